// ilp-disjoint, ilp-shortest: one path a pair, the least load of the busiest link, by an integer
// program over a set of paths.
//
// Method      First by descent: pair after pair takes the path whose busiest link is freest, until
//             nothing improves. Where that does not reach what the split over several paths proves
//             (path_weights.h), branch and cut goes on for a number of simplex iterations, the same
//             on every machine, or for the time that was asked for; the better of both is the
//             answer.
// Proof       paths_upper: no routing of one path a pair over the set is better. Where all links
//             are alike the busiest link's load is a whole number of demands, which makes the limit
//             of the split tighter. What the solver claims of its bound is not used.
// Complexity  Exponential. The iterations of the default take about a minute.
// Reference   [alltoall-mcf] 5.1 "ILP-disjoint", "ILP-shortest".
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "path_sets.h"
#include "path_weights.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/deadline.h"
#include "tutti/flow/network.h"
#include "tutti/lp/integer_program.h"
#include "tutti/sched/routing_chunks.h"

namespace tutti {
namespace {

constexpr int64_t kIterations = 300'000;
constexpr double kSplitGap = 1e-4;
constexpr int32_t kMaxSweeps = 50;
// Larger programs do not get beyond their first relaxation in any time we would wait.
constexpr int64_t kMaxProgramPaths = 50'000;

class OnePathAPair {
 public:
  OnePathAPair(const Topology& topology, const DemandTable& demand, const Routing& paths)
      : topology_(topology),
        demand_(demand),
        paths_(paths),
        load_(static_cast<size_t>(topology.num_links()), 0) {
    for (const NodeId source : topology.Ranks())
      for (const NodeId destination : topology.Ranks())
        chosen_.push_back(demand(source.value, destination.value) > 0
                              ? paths.Paths(source, destination)[0]
                              : PathId{-1});
  }

  // Each pair takes the path on which the fullest link is least full, those before it given.
  void Descend(const Deadline& deadline) {
    bool first = true;
    double best = 0;
    std::vector<PathId> kept;
    for (int32_t sweep = 0; sweep < kMaxSweeps && !CancelRequested(); ++sweep) {
      bool moved = false;
      ForEachPair([&](IdRange<PathId> of_pair, int64_t weight, PathId& chosen) {
        if (!first) Add(chosen, -weight);
        const PathId path = Freest(of_pair, weight);
        moved = moved || path != chosen;
        chosen = path;
        Add(chosen, weight);
      });
      first = false;
      const double strain = Strain();
      if (kept.empty() || strain < best) {
        best = strain;
        kept = chosen_;
      }
      if (!moved || deadline.HasPassed()) break;
    }
    chosen_ = std::move(kept);
  }

  // Largest load over bandwidth, in demands a byte/s.
  double Strain() const {
    double strain = 0;
    for (const LinkId link : topology_.Links())
      strain = std::max(strain, static_cast<double>(load_[link.index()]) /
                                    static_cast<double>(topology_.bandwidth(link)));
    return strain;
  }

  Routing ToRouting() const {
    RoutingBuilder builder(topology_.num_ranks(), 1);
    size_t pair = 0;
    for (const NodeId source : topology_.Ranks())
      for (const NodeId destination : topology_.Ranks()) {
        const PathId path = chosen_[pair++];
        if (path.value >= 0)
          builder.AddPath(paths_.Hops(path), demand_(source.value, destination.value));
        builder.EndPair();
      }
    return std::move(builder).Finish();
  }

  // Replaces the choice by what branch and cut finds, where it finds something.
  void Search(const IntegerLimits& limits) {
    IntegerProgram program;
    const double scale = 1 / Strain();
    const int32_t busiest = program.AddColumn(0, 1, 1, false);
    std::vector<std::vector<IntegerProgram::Entry>> on_link(load_.size());
    ForEachPair([&](IdRange<PathId> of_pair, int64_t weight, PathId& /*chosen*/) {
      std::vector<IntegerProgram::Entry> one;
      for (const PathId path : of_pair) {
        const int32_t column = program.AddColumn(0, 1, 0, true);
        one.push_back({column, 1});
        for (const LinkId link : paths_.Hops(path))
          on_link[link.index()].push_back(
              {column, static_cast<double>(weight) * scale /
                           static_cast<double>(topology_.bandwidth(link))});
      }
      program.AddRow(1, 1, std::move(one));
    });
    for (std::vector<IntegerProgram::Entry>& entries : on_link) {
      entries.push_back({busiest, -1});
      program.AddRow(-IntegerProgram::kNoLimit, 0, std::move(entries));
    }
    const Result<IntegerSolution> solved = program.Solve(limits);
    if (!solved) return;
    size_t column = 1;
    ForEachPair([&](IdRange<PathId> of_pair, int64_t /*weight*/, PathId& chosen) {
      for (const PathId path : of_pair)
        if (solved->columns[column++] > 0.5) chosen = path;
    });
  }

 private:
  template <class Visit>
  void ForEachPair(const Visit& visit) {
    size_t pair = 0;
    for (const NodeId source : topology_.Ranks())
      for (const NodeId destination : topology_.Ranks()) {
        PathId& chosen = chosen_[pair++];
        if (chosen.value >= 0)
          visit(paths_.Paths(source, destination), demand_(source.value, destination.value),
                chosen);
      }
  }
  void Add(PathId path, int64_t weight) {
    for (const LinkId link : paths_.Hops(path)) load_[link.index()] += weight;
  }
  PathId Freest(IdRange<PathId> of_pair, int64_t weight) const {
    PathId best = of_pair[0];
    std::pair<double, double> least{};
    for (const PathId path : of_pair) {
      // The fullest link, then all of them.
      std::pair<double, double> cost{};
      for (const LinkId link : paths_.Hops(path)) {
        const double strain = static_cast<double>(load_[link.index()] + weight) /
                              static_cast<double>(topology_.bandwidth(link));
        cost.first = std::max(cost.first, strain);
        cost.second += strain;
      }
      if (path != of_pair[0] && cost >= least) continue;
      best = path;
      least = cost;
    }
    return best;
  }

  const Topology& topology_;
  const DemandTable& demand_;
  const Routing& paths_;
  std::vector<int64_t> load_;   // of a link, by the choices of Descend
  std::vector<PathId> chosen_;  // of a pair; -1 without demand
};

// No routing of whole demands over links that are all alike has a load between two multiples of
// their common factor.
Rational WholeLoads(const Topology& topology, const DemandTable& demand, const Rational& upper) {
  int64_t factor = 0;
  for (const LinkId link : topology.Links())
    if (topology.bandwidth(link) != topology.bandwidth(LinkId{0})) return upper;
  for (int32_t source = 0; source < topology.num_ranks(); ++source)
    for (int32_t to = 0; to < topology.num_ranks(); ++to)
      factor = std::gcd(factor, demand(source, to));
  const int64_t pairs = int64_t{topology.num_ranks()} * (topology.num_ranks() - 1);
  const Rational mean = ToRational(demand.Total()) / Rational(pairs);
  const Rational load = (mean / upper / Rational(factor)).Ceil() * Rational(factor);
  return mean / load;
}

Result<Routed> RouteWhole(const Topology& topology, const RouterOptions& options, PathSet set) {
  const Deadline deadline(options.max_seconds);
  const DemandTable demand(topology.num_ranks(), options.demand);
  Result<Routing> paths = ListPaths(topology, demand, set, 0, deadline);
  if (!paths) return tl::unexpected(paths.error());
  if (options.max_paths > 0) paths = KeepHeaviestPaths(*paths, options.max_paths);
  PathWeightOptions weigh;
  weigh.gap = kSplitGap;
  if (options.max_seconds > 0)
    weigh.max_seconds = std::min(options.max_seconds / 4, deadline.Left());
  const Result<WeightedPaths> split = WeighPaths(topology, demand, *paths, weigh);
  if (!split) return tl::unexpected(split.error());
  const Rational upper = WholeLoads(topology, demand, split->upper);

  const auto rate = [&](Routing& routing) {
    routing.demand = options.demand;
    return RoutingRate(topology, routing);
  };
  OnePathAPair choice(topology, demand, *paths);
  choice.Descend(deadline);
  Routing best = choice.ToRouting();
  Rational best_rate = rate(best);
  const double gap = ((upper - best_rate) / upper).ToDouble();
  if (gap > options.gap.value_or(0) && !deadline.HasPassed() &&
      paths->num_paths() <= kMaxProgramPaths) {
    IntegerLimits limits;
    limits.seconds = deadline.Left();
    if (options.max_iterations > 0)
      limits.iterations = options.max_iterations;
    else if (options.max_seconds == 0)
      limits.iterations = kIterations;
    choice.Search(limits);
    Routing searched = choice.ToRouting();
    if (best_rate < rate(searched)) best = std::move(searched);
  }
  if (CancelRequested()) return tl::unexpected(CancelledError());
  Routed routed{std::move(best)};
  routed.paths_upper = upper;
  return routed;
}

}  // namespace

Result<Routed> RouteIlpDisjoint(const Topology& topology, const RouterOptions& options) {
  return RouteWhole(topology, options, PathSet::kDisjoint);
}

Result<Routed> RouteIlpShortest(const Topology& topology, const RouterOptions& options) {
  return RouteWhole(topology, options, PathSet::kShortest);
}

}  // namespace tutti

#include "path_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "common.h"
#include "tutti/base/cancel.h"
#include "tutti/base/deadline.h"
#include "tutti/flow/length_limit.h"
#include "tutti/lp/linear_program.h"

namespace tutti {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

// Flows of all paths, in mean demands, and the lengths that bound them.
struct Solution {
  std::vector<double> flow;
  std::vector<double> length;  // of a link
};

class Problem {
 public:
  Problem(const Topology& topology, const DemandTable& demand, const Routing& paths)
      : topology_(topology), demand_(demand), paths_(paths), network_(topology) {
    const double pairs = static_cast<double>(network_.num_ranks) * (network_.num_ranks - 1);
    mean_demand_ = ToRational(demand.Total()).ToDouble() / pairs;
    for (const LinkId link : topology.Links())
      capacity_.push_back(static_cast<double>(topology.bandwidth(link)) /
                          static_cast<double>(network_.smallest_bandwidth));
  }

  const Routing& paths() const { return paths_; }
  const std::vector<double>& capacity() const { return capacity_; }

  // Calls visit(paths of the pair, demand in mean demands) for each pair with demand.
  template <class Visit>
  void ForEachPair(const Visit& visit) const {
    for (const NodeId source : topology_.Ranks())
      for (const NodeId destination : topology_.Ranks()) {
        const int64_t demand = demand_(source.value, destination.value);
        if (demand > 0)
          visit(paths_.Paths(source, destination), static_cast<double>(demand) / mean_demand_);
      }
  }
  template <class Length>
  Length LengthOf(const std::vector<Length>& length, PathId path) const {
    Length sum = 0;
    for (const LinkId link : paths_.Hops(path)) sum += length[link.index()];
    return sum;
  }
  void AddLoads(const std::vector<double>& flow, std::vector<double>& load) const {
    load.assign(capacity_.size(), 0);
    for (size_t p = 0; p < flow.size(); ++p)
      if (flow[p] > 0)
        for (const LinkId link : paths_.Hops(PathId{static_cast<int32_t>(p)}))
          load[link.index()] += flow[p];
  }
  double LargestStrain(const std::vector<double>& load) const {
    double largest = 0;
    for (size_t l = 0; l < load.size(); ++l) largest = std::max(largest, load[l] / capacity_[l]);
    return largest;
  }
  // The rate that lengths allow, about.
  double UpperOf(const std::vector<double>& length) const {
    double available = 0, spent = 0;
    for (size_t l = 0; l < length.size(); ++l) available += capacity_[l] * length[l];
    ForEachPair([&](IdRange<PathId> paths, double demand) {
      double shortest = kFar;
      for (const PathId path : paths) shortest = std::min(shortest, LengthOf(length, path));
      spent += demand * shortest;
    });
    return available / spent;
  }

  Rational ExactUpper(const std::vector<int64_t>& length) const;
  Routing InUnits(const std::vector<double>& flow) const;

 private:
  const Topology& topology_;
  const DemandTable& demand_;
  const Routing& paths_;
  FlowNetwork network_;
  double mean_demand_;
  std::vector<double> capacity_;  // of a link
};

Rational Problem::ExactUpper(const std::vector<int64_t>& length) const {
  WideInteger available = 0;
  for (const LinkId link : topology_.Links())
    available += WideInteger{topology_.bandwidth(link)} * length[link.index()];
  Rational spent;
  for (const NodeId source : topology_.Ranks()) {
    WideInteger of_source = 0;
    for (const NodeId destination : topology_.Ranks()) {
      const int64_t demand = demand_(source.value, destination.value);
      if (demand == 0) continue;
      int64_t shortest = std::numeric_limits<int64_t>::max();
      for (const PathId path : paths_.Paths(source, destination))
        shortest = std::min(shortest, LengthOf(length, path));
      of_source += WideInteger{demand} * shortest;
    }
    spent += ToRational(of_source);
  }
  return RateOfStrain(network_, demand_, spent / ToRational(available));
}

Routing Problem::InUnits(const std::vector<double>& flow) const {
  const int64_t units = FineUnits(demand_);
  RoutingBuilder builder(topology_.num_ranks(), units);
  for (const NodeId source : topology_.Ranks())
    for (const NodeId destination : topology_.Ranks()) {
      const IdRange<PathId> paths = paths_.Paths(source, destination);
      double sum = 0;
      size_t largest = 0;
      for (const PathId path : paths) {
        sum += flow[path.index()];
        if (path == paths[0] || flow[path.index()] > flow[largest]) largest = path.index();
      }
      // The largest takes up what rounding leaves.
      const int64_t whole = demand_(source.value, destination.value) * units;
      int64_t left = whole;
      std::vector<int64_t> weight;
      for (const PathId path : paths) {
        // Doubles may hold nothing of a demand that is nothing beside others.
        const double share = sum > 0 ? static_cast<double>(whole) * (flow[path.index()] / sum) : 0;
        weight.push_back(path.index() == largest ? 0
                                                 : std::min<int64_t>(left, std::llround(share)));
        left -= weight.back();
      }
      for (const PathId path : paths) {
        const int64_t own = path.index() == largest
                                ? left
                                : weight[static_cast<size_t>(path.value - paths[0].value)];
        if (own > 0) builder.AddPath(paths_.Hops(path), own);
      }
      builder.EndPair();
    }
  return std::move(builder).Finish();
}

// --- The linear program itself

std::optional<Solution> SolveProgram(const Problem& problem) {
  LinearProgram program(LinearProgram::Goal::kMinimize);
  const int32_t strain = program.AddColumn(0, LinearProgram::kNoLimit, 1);
  const Routing& paths = problem.paths();
  for (int64_t p = 0; p < paths.num_paths(); ++p) program.AddColumn(0, LinearProgram::kNoLimit, 0);
  const auto column = [](PathId path) { return path.value + 1; };
  std::vector<std::vector<LinearProgram::Entry>> on_link(problem.capacity().size());
  problem.ForEachPair([&](IdRange<PathId> of_pair, double demand) {
    std::vector<LinearProgram::Entry> entries;
    for (const PathId path : of_pair) {
      entries.push_back({column(path), 1});
      for (const LinkId link : paths.Hops(path)) on_link[link.index()].push_back({column(path), 1});
    }
    program.AddRow(demand, demand, entries);
  });
  const int32_t first_link = program.num_rows();
  for (size_t l = 0; l < on_link.size(); ++l) {
    on_link[l].push_back({strain, -problem.capacity()[l]});
    program.AddRow(-LinearProgram::kNoLimit, 0, on_link[l]);
  }
  const Result<LpSolution> solved = program.Solve(LinearProgram::Check::kAsFound);
  if (!solved) return std::nullopt;
  Solution solution;
  for (int64_t p = 1; p <= paths.num_paths(); ++p)
    solution.flow.push_back(std::max(0.0, solved->columns[static_cast<size_t>(p)]));
  for (size_t l = 0; l < on_link.size(); ++l)
    solution.length.push_back(std::abs(solved->row_prices[static_cast<size_t>(first_link) + l]));
  const bool proves = *std::max_element(solution.length.begin(), solution.length.end()) > 0;
  return proves ? std::optional(std::move(solution)) : std::nullopt;
}

// --- Passes over all pairs

class PathIteration {
 public:
  explicit PathIteration(const Problem& problem)
      : problem_(problem),
        flow_(static_cast<size_t>(problem.paths().num_paths()), 0),
        weight_(problem.capacity().size(), 1),
        on_best_(weight_.size(), -1) {
    StartShortest();
    problem_.AddLoads(flow_, load_);
    for (const double capacity : problem.capacity()) length_.push_back(1 / capacity);
    OfferLengths();
    OfferFlow();
  }

  double gap() const { return std::max(0.0, 1 - lower_ / upper_); }
  int32_t passes_without_progress() const { return passes_ - last_progress_; }
  Solution Best() && { return {std::move(best_flow_), std::move(best_length_)}; }

  void Pass() {
    if (passes_ > 0) StepWeights();
    Update();
    problem_.ForEachPair([this](IdRange<PathId> paths, double /*demand*/) { Balance(paths); });
    ++passes_;
    problem_.AddLoads(flow_, load_);  // afresh, so that rounding does not add up
    OfferFlow();
    Update();
    OfferLengths();
  }

 private:
  // As in mcf/iteration.cc, where they were measured.
  static constexpr double kFirstSteepness = 3, kLastSteepness = 20, kSteepnessGrowth = 1.01;
  static constexpr double kFirstWeightStep = 1.5, kMinWeightStep = 0.5, kWeightStepDecay = 0.9;
  static constexpr int32_t kStepPatience = 20;
  static constexpr double kMinWeight = 1e-11;

  // Each demand over the pair's paths of the fewest hops, alike.
  void StartShortest() {
    problem_.ForEachPair([this](IdRange<PathId> paths, double demand) {
      const auto hops = [this](PathId path) { return problem_.paths().Hops(path).size(); };
      size_t fewest = hops(paths[0]);
      for (const PathId path : paths) fewest = std::min(fewest, hops(path));
      double count = 0;
      for (const PathId path : paths) count += hops(path) == fewest ? 1 : 0;
      for (const PathId path : paths)
        if (hops(path) == fewest) flow_[path.index()] = demand / count;
    });
  }

  void StepWeights() {
    if (passes_without_progress() > 0 && passes_without_progress() % kStepPatience == 0)
      weight_step_ = std::max(weight_step_ * kWeightStepDecay, kMinWeightStep);
    double sum = 0;
    for (size_t l = 0; l < weight_.size(); ++l) {
      const double excess = load_[l] * upper_ / problem_.capacity()[l] - 1;
      weight_[l] = std::max(0.0, weight_[l] + weight_step_ * steepness_ * excess);
      sum += weight_[l];
    }
    for (double& weight : weight_) weight *= static_cast<double>(weight_.size()) / sum;
    steepness_ = std::min(steepness_ * kSteepnessGrowth, kLastSteepness);
  }

  double LengthAt(size_t link) const {
    const double capacity = problem_.capacity()[link];
    const double excess = load_[link] * upper_ / capacity - 1;
    return std::max(weight_[link] + steepness_ * excess, kMinWeight) / capacity;
  }
  void Update() {
    for (size_t l = 0; l < length_.size(); ++l) length_[l] = LengthAt(l);
  }

  void Shift(PathId path, double change) {
    flow_[path.index()] += change;
    for (const LinkId link : problem_.paths().Hops(path)) {
      load_[link.index()] += change;
      length_[link.index()] = LengthAt(link.index());
    }
  }

  void Balance(IdRange<PathId> paths) {
    if (paths.size() < 2) return;
    PathId best = paths[0];
    double least = kFar;
    for (const PathId path : paths) {
      const double length = problem_.LengthOf(length_, path);
      if (length >= least) continue;
      least = length;
      best = path;
    }
    for (const LinkId link : problem_.paths().Hops(best)) on_best_[link.index()] = best.value;
    for (const PathId path : paths) {
      if (path == best || flow_[path.index()] <= 0) continue;
      const double excess = problem_.LengthOf(length_, path) - problem_.LengthOf(length_, best);
      if (excess <= 0) continue;
      // What changes the difference by 1: links of both see no change.
      double slope = 0;
      for (const LinkId link : problem_.paths().Hops(best)) slope += SlopeOf(link);
      for (const LinkId link : problem_.paths().Hops(path))
        slope += on_best_[link.index()] == best.value ? -SlopeOf(link) : SlopeOf(link);
      const double change =
          slope > 0 ? std::min(flow_[path.index()], excess / slope) : flow_[path.index()];
      Shift(path, -change);
      Shift(best, change);
      if (flow_[path.index()] < 0) flow_[path.index()] = 0;
    }
  }
  double SlopeOf(LinkId link) const {
    const double capacity = problem_.capacity()[link.index()];
    return steepness_ * upper_ / (capacity * capacity);
  }

  void OfferLengths() {
    const double upper = problem_.UpperOf(length_);
    if (upper_ > 0 && !(upper < upper_)) return;
    upper_ = upper;
    best_length_ = length_;
    last_progress_ = passes_;
  }
  void OfferFlow() {
    const double lower = 1 / problem_.LargestStrain(load_);
    if (lower <= lower_) return;
    lower_ = lower;
    best_flow_ = flow_;
    last_progress_ = passes_;
  }

  const Problem& problem_;
  std::vector<double> flow_, best_flow_;
  std::vector<double> load_, weight_, length_, best_length_;  // of a link
  std::vector<int32_t> on_best_;  // of a link: the last path that was best and uses it
  double lower_ = 0, upper_ = 0;
  double steepness_ = kFirstSteepness, weight_step_ = kFirstWeightStep;
  int32_t passes_ = 0, last_progress_ = 0;
};

Result<Solution> Iterate(const Problem& problem, const PathWeightOptions& options) {
  constexpr int32_t kPatience = 500;  // passes without progress
  const Deadline deadline(options.max_seconds);
  PathIteration iteration(problem);
  while (iteration.gap() > options.gap && iteration.passes_without_progress() < kPatience) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    if (deadline.HasPassed()) break;
    iteration.Pass();
  }
  return std::move(iteration).Best();
}

}  // namespace

Result<WeightedPaths> WeighPaths(const Topology& topology, const DemandTable& demand,
                                 const Routing& paths, const PathWeightOptions& options) {
  const Problem problem(topology, demand, paths);
  std::optional<Solution> solution;
  if (paths.num_paths() <= options.max_program_paths) solution = SolveProgram(problem);
  if (!solution) {
    Result<Solution> found = Iterate(problem, options);
    if (!found) return tl::unexpected(found.error());
    solution = *std::move(found);
  }
  return WeightedPaths{problem.InUnits(solution->flow),
                       problem.ExactUpper(WholeLengths(solution->length))};
}

}  // namespace tutti

#include "tutti/flow/concurrent_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "exact.h"
#include "iteration.h"
#include "restart.h"
#include "tutti/base/deadline.h"
#include "tutti/base/memory.h"
#include "tutti/base/parallel.h"
#include "tutti/base/progress.h"
#include "tutti/flow/automorphisms.h"
#include "tutti/flow/length_limit.h"
#include "tutti/flow/network.h"
#include "tutti/flow/source_flow.h"
#include "tutti/topo/operators.h"

namespace tutti {
namespace {

// Doubles do not get closer than this, whatever is asked for.
constexpr int32_t kPatience = 1000;  // passes without progress
// Proportions of flows survive doubles below this.
constexpr int64_t kMaxUnits = int64_t{1} << 52;
// The gap at which a proof of the optimum is tried, and the passes after which it is tried anyway:
// the linear program starts from what flow there is.
constexpr double kProofGap = 1e-5;
constexpr int32_t kPassesToProof = 200;
// Links that the search for symmetry may look at: a tenth of a second.
constexpr int64_t kSymmetryBudget = 20'000'000;
constexpr int64_t kProgressSteps = 1000;

Status CheckOptions(const Topology& topology, const ConcurrentFlowOptions& options) {
  if (topology.num_ranks() < 2)
    return InvalidArgument("a concurrent flow needs at least two ranks, got one");
  if (!(options.gap >= 0 && options.gap < 1))
    return InvalidArgument(fmt::format("the gap must be >= 0 and < 1, got {}", options.gap));
  if (options.max_passes < 0)
    return InvalidArgument(fmt::format("passes must be >= 0, got {}", options.max_passes));
  if (!(options.max_seconds >= 0))
    return InvalidArgument(fmt::format("seconds must be >= 0, got {}", options.max_seconds));
  return CheckDemand(topology.num_ranks(), options.demand);
}

// Each rank's flow uses at least one bundle a rank: in doubles, in units, and once more in the best
// flows kept.
Status CheckMemoryOf(const Topology& topology) {
  constexpr int64_t kBytesPerBundle = 48;
  const int64_t ranks = topology.num_ranks();
  return CheckMemory(fmt::format("the flow of {} ranks", ranks),
                     ranks * (ranks - 1) * kBytesPerBundle, AvailableMemoryBytes());
}

// Many small divisors, so that a flow split into halves, thirds, ... stays exact.
int64_t UnitsPerDemand(const DemandTable& demand) {
  constexpr int64_t kSmooth = 720'720;  // least common multiple of 1 .. 16 over 1
  const int64_t most = kMaxUnits / std::max<int64_t>(demand.LargestFromRank(), 1);
  int64_t units = most >= kSmooth ? kSmooth : 1;
  while (units <= most / 2 && units < int64_t{1} << 40) units *= 2;
  return units;
}

// f_lower of a flow in units.
void CountLoads(const FlowNetwork& network, const DemandTable& demand, ConcurrentFlow& result) {
  std::vector<WideInteger> load(network.num_bundles(), 0);
  for (const auto& flow : result.flow_from)
    for (const BundleFlow& part : flow) load[static_cast<size_t>(part.bundle)] += part.units;
  Rational strain;
  for (size_t e = 0; e < load.size(); ++e)
    strain = std::max(strain, ToRational(load[e]) / Rational(network.bundles[e].bandwidth));
  result.f_lower = RateOfStrain(network, demand, strain / Rational(result.units_per_demand));
}

void MakeUnits(const FlowNetwork& network, const DemandTable& demand, const NetworkGroup& group,
               const std::vector<SourceFlow>& flows, ConcurrentFlow& result) {
  result.units_per_demand = UnitsPerDemand(demand);
  result.flow_from.assign(static_cast<size_t>(network.num_ranks), {});
  ParallelFor(static_cast<int64_t>(flows.size()), 16, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const auto units = InUnits(network, demand, flows[i], result.units_per_demand);
      const auto source = static_cast<size_t>(flows[i].order[0]);
      for (const NetworkMap& map : group.elements) {
        auto& image = result.flow_from[static_cast<size_t>(map.node[source])];
        image.reserve(units.size());
        for (const BundleFlow& part : units)
          image.push_back({map.bundle[static_cast<size_t>(part.bundle)], part.units});
      }
    }
  });
  CountLoads(network, demand, result);
}

// Puts the optimum in the place of an answer close to it, or why that was not proven.
Status Prove(const Topology& topology, const FlowNetwork& network, const DemandTable& demand,
             const std::vector<SourceFlow>& near, const Deadline& deadline,
             ConcurrentFlow& result) {
  Result<ConcurrentFlow> proven =
      ProveOptimum(topology, network, demand, result.demand, near, deadline);
  if (!proven) {
    if (proven.error().code != ErrorCode::kResourceExhausted) return tl::unexpected(proven.error());
    result.no_proof = proven.error().message;
    return {};
  }
  result.f_lower = proven->f_lower;
  result.f_upper = proven->f_upper;
  if (proven->wide) {
    result.wide = std::move(proven->wide);
    return {};
  }
  result.units_per_demand = proven->units_per_demand;
  result.flow_from = std::move(proven->flow_from);
  result.lengths = std::move(proven->lengths);
  return {};
}

// The representatives' flows taken to all ranks.
std::vector<SourceFlow> AllFlows(const NetworkGroup& group, const std::vector<SourceFlow>& flows) {
  std::vector<SourceFlow> all(group.representative.size());
  for (const SourceFlow& flow : flows)
    for (const NetworkMap& map : group.elements) {
      SourceFlow& image = all[static_cast<size_t>(map.node[static_cast<size_t>(flow.order[0])])] =
          flow;
      for (int32_t& node : image.order) node = map.node[static_cast<size_t>(node)];
      for (int32_t& bundle : image.bundles) bundle = map.bundle[static_cast<size_t>(bundle)];
    }
  return all;
}

// How far it is from the first gap to the one asked for, on a logarithmic scale.
class GapProgress {
 public:
  explicit GapProgress(double target)
      : target_(std::log(std::max(target, 1e-12))), scope_("concurrent flow", kProgressSteps) {}
  void Report(double gap) {
    const double now = std::log(std::clamp(gap, 1e-12, 1.0));
    const double part = std::clamp(now / target_, 0.0, 1.0);
    const auto steps = static_cast<int64_t>(part * static_cast<double>(kProgressSteps));
    if (steps <= shown_) return;
    scope_.Add(steps - shown_);
    shown_ = steps;
  }

 private:
  double target_;
  int64_t shown_ = 0;
  ProgressScope scope_;
};

}  // namespace

Result<ConcurrentFlow> SolveConcurrentFlow(const Topology& topology,
                                           const ConcurrentFlowOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Deadline deadline(options.max_seconds);
  const auto start = Clock::now();
  const auto seconds = [start] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Status status = CheckOptions(topology, options);
  if (status) status = CheckMemoryOf(topology);
  if (!status) return tl::unexpected(status.error());

  const FlowNetwork network(topology);
  const DemandTable demand(topology.num_ranks(), options.demand);
  const NetworkGroup group = options.symmetry && !options.start
                                 ? FindFreeGroup(topology, network, options.demand, kSymmetryBudget)
                                 : IdentityGroup(network);
  std::optional<Restart> restart;
  if (options.start) {
    Result<Restart> found = RestartFrom(topology, network, demand, demand.Mean(), *options.start);
    if (!found) return tl::unexpected(found.error());
    restart = *std::move(found);
  }

  const double gap_wanted = options.exact ? 0 : options.gap;
  FlowIteration iteration(network, demand, group, gap_wanted, std::move(restart));
  GapProgress progress(options.exact ? kProofGap : options.gap);
  ConcurrentFlow result;
  for (;;) {
    const double gap = iteration.gap();
    progress.Report(gap);
    const bool stop =
        iteration.passes() >= options.max_passes ||
        iteration.passes_without_progress() >= kPatience ||
        (options.exact && (gap <= kProofGap || iteration.passes() >= kPassesToProof)) ||
        deadline.HasPassed();
    // Doubles only say when it is worth counting.
    if (stop || gap <= gap_wanted + 1e-15) {
      MakeUnits(network, demand, group, iteration.BestFlows(), result);
      result.f_upper = iteration.upper();
      result.lengths = iteration.lengths();
      if (stop || result.gap() <= gap_wanted) break;
    }
    if (status = iteration.Pass(); !status) return tl::unexpected(status.error());
  }
  result.bundles = network.bundles;
  result.demand = options.demand;
  if (options.exact && result.f_lower != result.f_upper) {
    status =
        Prove(topology, network, demand, AllFlows(group, iteration.BestFlows()), deadline, result);
    if (!status) return tl::unexpected(status.error());
  }
  result.passes = iteration.passes();
  result.seconds = seconds();
  return result;
}

Result<HostedFlow> SolveHostedFlow(const Topology& topology, const ConcurrentFlowOptions& options) {
  Result<Topology> network = HostLimitsAsLinks(topology);
  if (!network) return tl::unexpected(network.error());
  Result<ConcurrentFlow> flow = SolveConcurrentFlow(*network, options);
  if (!flow) return tl::unexpected(flow.error());
  const Rational unit(network->min_bandwidth(), topology.min_bandwidth());
  const Rational lower = flow->f_lower * unit, upper = flow->f_upper * unit;
  return HostedFlow{*std::move(network), *std::move(flow), lower, upper};
}

}  // namespace tutti

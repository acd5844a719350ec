// mcf, mcf-extp: routings out of the concurrent flow (concurrent_flow.h), peeled into paths
// (flow_paths.h). Both reach exactly f_lower of the flow. Where mcf-extp may keep only some paths
// of a pair it keeps the heaviest and splits the demands over those anew (path_weights.h).
//
// Reference   [alltoall-mcf] 3.1.2, 3.2.1.
#include <utility>

#include "flow_paths.h"
#include "path_weights.h"
#include "registry.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/sched/routing_chunks.h"

namespace tutti {
namespace {

constexpr double kMcfGap = 1e-4;
// Gap of the split over the paths that are kept, which costs far more than the flow.
constexpr double kMcfSplitGap = 1e-3;

Result<Routed> PathsOfBestFlow(const Topology& topology, const RouterOptions& options) {
  ConcurrentFlowOptions flow_options;
  flow_options.gap = options.gap.value_or(kMcfGap);
  flow_options.max_seconds = options.max_seconds;
  flow_options.demand = options.demand;
  const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, flow_options);
  if (!flow) return tl::unexpected(flow.error());
  Result<Routing> routing = PathsOfFlow(topology, *flow);
  if (!routing) return tl::unexpected(routing.error());
  Routed routed{*std::move(routing)};
  routed.f_upper = flow->f_upper;
  return routed;
}

}  // namespace

Result<Routed> RouteMcf(const Topology& topology, const RouterOptions& options) {
  return PathsOfBestFlow(topology, options);
}

Result<Routed> RouteMcfExtP(const Topology& topology, const RouterOptions& options) {
  Result<Routed> routed = PathsOfBestFlow(topology, options);
  if (!routed || options.max_paths == 0) return routed;
  const DemandTable demand(topology.num_ranks(), options.demand);
  Routing kept = KeepHeaviestPaths(routed->routing, options.max_paths);
  PathWeightOptions weigh;
  weigh.gap = options.gap.value_or(kMcfSplitGap);
  weigh.max_seconds = options.max_seconds;
  Result<WeightedPaths> weighted = WeighPaths(topology, demand, kept, weigh);
  if (!weighted) return tl::unexpected(weighted.error());
  // In proportion, where that was better already.
  if (RoutingRate(topology, kept) < RoutingRate(topology, weighted->routing))
    kept = std::move(weighted->routing);
  routed->paths_upper = std::move(weighted->upper);
  kept.demand = options.demand;
  routed->loss = RateLoss(topology, routed->routing, kept);
  routed->routing = std::move(kept);
  return routed;
}

}  // namespace tutti

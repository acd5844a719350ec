// pmcf: the best split of every pair's data over a set of paths (route/path_sets.h), proven by
// lengths of links to be within `gap` of it (route/path_weights.h).
//
// Reference   [alltoall-mcf] 3.1.4; disjoint paths are the paper's choice where paths are many.
#include <utility>

#include "route/path_sets.h"
#include "route/path_weights.h"
#include "route/registry.h"
#include "tutti/sched/routing_chunks.h"

namespace tutti {

namespace {

constexpr double kGap = 1e-3;

}  // namespace

Result<Routed> RoutePmcf(const Topology& topology, const RouterOptions& options) {
  const DemandTable demand(topology.num_ranks(), options.demand);
  Result<Routing> paths = ListPaths(topology, demand, options.paths, options.extra_hops);
  if (!paths) return tl::unexpected(paths.error());
  // All weigh the same yet: those of the fewest hops stay.
  if (options.max_paths > 0) paths = KeepHeaviestPaths(*paths, options.max_paths);
  PathWeightOptions weigh;
  weigh.gap = options.gap.value_or(kGap);
  weigh.max_seconds = options.max_seconds;
  Result<WeightedPaths> weighted = WeighPaths(topology, demand, *paths, weigh);
  if (!weighted) return tl::unexpected(weighted.error());
  Routed routed{std::move(weighted->routing)};
  routed.paths_upper = std::move(weighted->upper);
  return routed;
}

}  // namespace tutti

// pmcf: the best split of every pair's data over a set of paths (route/path_sets.h), proven by
// lengths of links to be within `gap` of it (route/path_weights.h).
//
// Disjoint    A pair has many sets of disjoint paths. Where those of the fewest hops do not reach
//             what the flow proves to be possible, others are chosen among the paths of that flow
//             (route/disjoint_choice.h), with those of the fewest hops that cross none of them.
// Reference   [alltoall-mcf] 3.1.4; disjoint paths are the paper's choice where paths are many.
#include <algorithm>
#include <optional>
#include <utility>

#include "disjoint_choice.h"
#include "flow_paths.h"
#include "path_sets.h"
#include "path_weights.h"
#include "registry.h"
#include "tutti/base/deadline.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/flow/network.h"
#include "tutti/sched/routing_chunks.h"

namespace tutti {
namespace {

constexpr double kPmcfGap = 1e-3;

class Splitter {
 public:
  Splitter(const Topology& topology, const RouterOptions& options)
      : topology_(topology),
        options_(options),
        demand_(topology.num_ranks(), options.demand),
        gap_(options.gap.value_or(kPmcfGap)),
        deadline_(options.max_seconds) {}

  Result<Routed> Run() {
    const Result<Routing> paths =
        ListPaths(topology_, demand_, options_.paths, options_.extra_hops, deadline_);
    if (!paths) return tl::unexpected(paths.error());
    // All weigh the same yet: of more than are wanted those of the fewest hops stay.
    Result<WeightedPaths> split =
        Split(options_.max_paths > 0 ? KeepHeaviestPaths(*paths, options_.max_paths) : *paths);
    if (!split) return tl::unexpected(split.error());
    Routed routed{std::move(split->routing)};
    routed.paths_upper = std::move(split->upper);
    if (options_.paths == PathSet::kDisjoint && !deadline_.HasPassed())
      if (const Status chosen = ChooseAmongDisjoint(*paths, routed); !chosen)
        return tl::unexpected(chosen.error());
    return routed;
  }

 private:
  Result<WeightedPaths> Split(const Routing& paths) const {
    PathWeightOptions weigh;
    weigh.gap = gap_;
    weigh.max_seconds = deadline_.Left();
    return WeighPaths(topology_, demand_, paths, weigh);
  }
  Rational RateOf(Routing& routing) const {
    routing.demand = options_.demand;
    return RoutingRate(topology_, routing);
  }

  Status ChooseAmongDisjoint(const Routing& fewest_hops, Routed& routed) const {
    ConcurrentFlowOptions flow_options;
    flow_options.gap = gap_;
    flow_options.max_seconds = deadline_.Left();
    flow_options.demand = options_.demand;
    const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology_, flow_options);
    if (!flow) return tl::unexpected(flow.error());
    routed.f_upper = flow->f_upper;
    // The limit is as far from the optimum as the split may be.
    const std::optional<Rational> of_hosts = HostRate(topology_, options_.demand);
    const Rational limit = of_hosts ? std::min(*of_hosts, flow->f_upper) : flow->f_upper;
    const double reached = (RateOf(routed.routing) / limit).ToDouble();
    if (reached >= 1 - 2 * gap_ || deadline_.HasPassed()) return {};
    const Result<Routing> ways = PathsOfFlow(topology_, *flow);
    if (!ways) return tl::unexpected(ways.error());
    const Result<Routing> chosen =
        ChooseDisjoint(topology_, demand_, MergePaths(*ways, fewest_hops), gap_, deadline_);
    if (!chosen) return tl::unexpected(chosen.error());
    Result<WeightedPaths> split = Split(*chosen);
    if (split && options_.max_paths > 0)
      split = Split(KeepHeaviestPaths(split->routing, options_.max_paths));
    if (!split) return tl::unexpected(split.error());
    if (RateOf(split->routing) <= RateOf(routed.routing)) return {};
    routed.routing = std::move(split->routing);
    routed.paths_upper = std::move(split->upper);
    return {};
  }

  const Topology& topology_;
  const RouterOptions& options_;
  DemandTable demand_;
  double gap_;
  Deadline deadline_;
};

}  // namespace

Result<Routed> RoutePmcf(const Topology& topology, const RouterOptions& options) {
  return Splitter(topology, options).Run();
}

}  // namespace tutti

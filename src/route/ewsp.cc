// ewsp: equal weight over all shortest paths of a pair. Parallel links are different paths.
//
// Exactness   Units are the least common multiple of the numbers of paths, so that equal means
//             equal. Where that is beyond numbers, weights of a pair differ by a chunk at most.
// Fallback    Grids have more shortest paths than memory holds. There the same loads of all links
//             come from fewer paths: each rank's part of the equal split is taken as one flow and
//             peeled (flow_paths.h).
// Complexity  O(n (n + m)) + hops.
// Reference   [alltoall-mcf] 5.1 "EwSP".
#include <numeric>
#include <utility>
#include <vector>

#include "common.h"
#include "flow_paths.h"
#include "path_sets.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/flow/network.h"
#include "tutti/flow/source_flow.h"

namespace tutti {
namespace {

// Lists of paths beyond this are for nobody: 256 MiB of hops.
constexpr double kMaxHops = 1 << 26;

// Nodes by distance from a source, with the number of shortest paths to each.
struct Layers {
  std::vector<int32_t> order;
  std::vector<int32_t> hops;
  std::vector<double> count;
};

class EqualSplitByHops {
 public:
  EqualSplitByHops(const Topology& topology, const FlowNetwork& network, const DemandTable& demand)
      : network_(network), demand_(demand), num_links_(network.num_bundles(), 0) {
    for (const LinkId link : topology.Links())
      ++num_links_[BundleOf(network.bundles, topology, link)];
  }

  Layers Search(int32_t source) const {
    const auto nodes = static_cast<size_t>(network_.num_nodes);
    Layers layers{{source}, std::vector<int32_t>(nodes, -1), std::vector<double>(nodes, 0)};
    layers.hops[static_cast<size_t>(source)] = 0;
    layers.count[static_cast<size_t>(source)] = 1;
    for (size_t next = 0; next < layers.order.size(); ++next) {
      const auto u = static_cast<size_t>(layers.order[next]);
      for (int32_t i = network_.first_out[u]; i < network_.first_out[u + 1]; ++i) {
        const auto e = static_cast<size_t>(network_.out_bundles[static_cast<size_t>(i)]);
        const auto v = static_cast<size_t>(network_.head[e]);
        if (layers.hops[v] < 0) {
          layers.hops[v] = layers.hops[u] + 1;
          layers.order.push_back(network_.head[e]);
        }
        if (layers.hops[v] == layers.hops[u] + 1)
          layers.count[v] += layers.count[u] * num_links_[e];
      }
    }
    return layers;
  }

  // All that the source sends, each demand over its shortest paths alike.
  SourceFlow FlowFrom(int32_t source) const {
    const Layers layers = Search(source);
    std::vector<double> need(layers.count.size(), 0), flow(network_.num_bundles(), 0);
    for (size_t i = layers.order.size(); i-- > 1;) {
      const auto v = static_cast<size_t>(layers.order[i]);
      need[v] += static_cast<double>(demand_(source, layers.order[i]));
      ForEachInto(layers, v, [&](size_t e, size_t u) {
        flow[e] = need[v] * (layers.count[u] * num_links_[e] / layers.count[v]);
        need[u] += flow[e];
      });
    }
    SourceFlow result;
    result.order.push_back(source);
    for (size_t i = 1; i < layers.order.size(); ++i) {
      const auto v = static_cast<size_t>(layers.order[i]);
      if (need[v] <= 0) continue;
      result.order.push_back(layers.order[i]);
      ForEachInto(layers, v, [&](size_t e, size_t /*tail*/) {
        result.bundles.push_back(static_cast<int32_t>(e));
        result.flow.push_back(flow[e]);
      });
    }
    return result;
  }

 private:
  // Calls visit(bundle, tail) for the last bundles of shortest paths to v.
  template <class Visit>
  void ForEachInto(const Layers& layers, size_t v, const Visit& visit) const {
    for (auto e = static_cast<size_t>(network_.first_in[v]);
         e < static_cast<size_t>(network_.first_in[v + 1]); ++e) {
      const auto u = static_cast<size_t>(network_.tail[e]);
      if (layers.hops[u] >= 0 && layers.hops[u] + 1 == layers.hops[v]) visit(e, u);
    }
  }

  const FlowNetwork& network_;
  const DemandTable& demand_;
  std::vector<int32_t> num_links_;  // of a bundle
};

// Hops of all shortest paths of all pairs with demand.
double CountHops(const FlowNetwork& network, const DemandTable& demand,
                 const EqualSplitByHops& split) {
  double hops = 0;
  for (int32_t source = 0; source < network.num_ranks; ++source) {
    const Layers layers = split.Search(source);
    for (int32_t to = 0; to < network.num_ranks; ++to)
      if (demand(source, to) > 0)
        hops += layers.count[static_cast<size_t>(to)] * layers.hops[static_cast<size_t>(to)];
  }
  return hops;
}

// The least common multiple of the pairs' numbers of paths, or what has many divisors.
int64_t UnitsFor(const Routing& paths, const DemandTable& demand) {
  const WideInteger most = (WideInteger{1} << 62) / demand.Total();
  int64_t units = 1;
  for (const NodeId source : IdRange<NodeId>(0, paths.num_ranks))
    for (const NodeId destination : IdRange<NodeId>(0, paths.num_ranks)) {
      const int64_t count = paths.Paths(source, destination).size();
      if (count == 0) continue;
      const WideInteger common = WideInteger{units} / std::gcd(units, count) * count;
      if (common > most) return FineUnits(demand);
      units = static_cast<int64_t>(common);
    }
  return units;
}

Routing WeighAlike(const Routing& paths, const DemandTable& demand) {
  const int64_t units = UnitsFor(paths, demand);
  RoutingBuilder builder(paths.num_ranks, units);
  for (const NodeId source : IdRange<NodeId>(0, paths.num_ranks))
    for (const NodeId destination : IdRange<NodeId>(0, paths.num_ranks)) {
      const IdRange<PathId> of_pair = paths.Paths(source, destination);
      int64_t left = demand(source.value, destination.value) * units;
      int64_t paths_left = of_pair.size();
      for (const PathId path : of_pair) {
        const int64_t weight = left / paths_left--;
        left -= weight;
        if (weight > 0) builder.AddPath(paths.Hops(path), weight);
      }
      builder.EndPair();
    }
  return std::move(builder).Finish();
}

Result<Routing> PeelAlike(const Topology& topology, const FlowNetwork& network,
                          const DemandTable& demand, const EqualSplitByHops& split,
                          const RouterOptions& options) {
  ConcurrentFlow flow;
  flow.bundles = network.bundles;
  flow.demand = options.demand;
  flow.units_per_demand = FineUnits(demand);
  flow.flow_from.resize(static_cast<size_t>(network.num_ranks));
  ParallelFor(network.num_ranks, 16, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end && !CancelRequested(); ++s)
      flow.flow_from[static_cast<size_t>(s)] =
          InUnits(network, demand, split.FlowFrom(static_cast<int32_t>(s)), flow.units_per_demand);
  });
  if (CancelRequested()) return tl::unexpected(CancelledError());
  return PathsOfFlow(topology, flow);
}

}  // namespace

Result<Routed> RouteEwsp(const Topology& topology, const RouterOptions& options) {
  const FlowNetwork network(topology);
  const DemandTable demand(topology.num_ranks(), options.demand);
  const EqualSplitByHops split(topology, network, demand);
  if (CountHops(network, demand, split) > kMaxHops) {
    Result<Routing> peeled = PeelAlike(topology, network, demand, split, options);
    if (!peeled) return tl::unexpected(peeled.error());
    return Routed{*std::move(peeled)};
  }
  const Result<Routing> paths = ListPaths(topology, demand, PathSet::kShortest, 0);
  if (!paths) return tl::unexpected(paths.error());
  return Routed{WeighAlike(*paths, demand)};
}

}  // namespace tutti

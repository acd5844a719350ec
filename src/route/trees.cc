#include "trees.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {

Error NoWay(const Topology& topology, NodeId source, NodeId destination) {
  return {ErrorCode::kInfeasible,
          fmt::format("no way leads from rank {} to rank {}", topology.node_name(source),
                      topology.node_name(destination))};
}

Status AddTreePaths(const Topology& topology, const DemandTable& demand, NodeId source,
                    const Tree& tree, RoutingBuilder& builder) {
  std::vector<LinkId> hops;
  for (const NodeId destination : topology.Ranks()) {
    const int64_t weight = demand(source.value, destination.value);
    if (weight > 0) {
      hops.clear();
      for (NodeId at = destination; at != source; at = topology.tail(hops.back())) {
        if (tree[at.index()] == kNoLink)
          return tl::unexpected(NoWay(topology, source, destination));
        hops.push_back(tree[at.index()]);
      }
      std::reverse(hops.begin(), hops.end());
      builder.AddPath(hops, weight);
    }
    builder.EndPair();
  }
  return {};
}

}  // namespace tutti

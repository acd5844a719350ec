// native: what point-to-point sends take where nobody planned: for each pair the first of its
// shortest paths in the order of links, whatever others use. The least a router must beat.
//
// Complexity  O(n (n + m)) + hops.
// Reference   [alltoall-mcf] 5.2 ("native" all-to-all of NCCL and Open MPI).
#include "registry.h"
#include "trees.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace {

// Breadth first; among the links that reach a node soonest the one that is met first.
Tree FirstShortestPaths(const Topology& topology, NodeId source) {
  Tree tree(static_cast<size_t>(topology.num_nodes()), kNoLink);
  std::vector<NodeId> queue = {source};
  for (size_t next = 0; next < queue.size(); ++next) {
    const NodeId at = queue[next];
    for (const LinkId link : topology.OutLinks(at)) {
      const NodeId head = topology.head(link);
      if (head == source || tree[head.index()] != kNoLink) continue;
      tree[head.index()] = link;
      queue.push_back(head);
    }
  }
  return tree;
}

}  // namespace

Result<Routed> RouteNative(const Topology& topology, const RouterOptions& options) {
  const DemandTable demand(topology.num_ranks(), options.demand);
  RoutingBuilder builder(topology.num_ranks(), 1);
  for (const NodeId source : topology.Ranks()) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const Tree tree = FirstShortestPaths(topology, source);
    if (const Status added = AddTreePaths(topology, demand, source, tree, builder); !added)
      return tl::unexpected(added.error());
  }
  return Routed{std::move(builder).Finish()};
}

}  // namespace tutti

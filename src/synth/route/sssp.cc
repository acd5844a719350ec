// sssp: one shortest path a pair, by single-source searches over links that cost what earlier
// sources have put on them.
//
// Method      Sources in order of rank. From each a tree of fewest-hop paths; among those of a node
//             the one whose links carry least so far, in time (load over bandwidth). Then the tree
//             adds its load. Searches of one source do not see each other, which is what makes
//             single links full.
// Exactness   Loads in whole units; a link counts in proportion to 1 / bandwidth, rounded to 2^-16.
// Complexity  O(n (n + m)) + hops.
// Reference   [alltoall-mcf] 5.1 "SSSP"; the weights are those of DF-SSSP [Domke, Hoefler, Nagel
//             2011], which keep to shortest paths.
#include <algorithm>
#include <utility>

#include "route/registry.h"
#include "route/trees.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace {

class LoadAwareTrees {
 public:
  LoadAwareTrees(const Topology& topology, const DemandTable& demand)
      : topology_(topology), demand_(demand), cost_(static_cast<size_t>(topology.num_links()), 0) {
    constexpr WideInteger kWhole = 1 << 16;
    int64_t fastest = 1;
    for (const LinkId link : topology.Links())
      fastest = std::max(fastest, topology.bandwidth(link));
    for (const LinkId link : topology.Links())
      slowness_.push_back(static_cast<int64_t>(
          std::min<WideInteger>(kWhole * fastest / topology.bandwidth(link), int64_t{1} << 40)));
  }

  // The next source's tree, whose load then counts.
  Tree Next(NodeId source) {
    const auto nodes = static_cast<size_t>(topology_.num_nodes());
    Tree tree(nodes, kNoLink);
    std::vector<int32_t> hops(nodes, -1);
    std::vector<WideInteger> distance(nodes, 0);
    std::vector<NodeId> order = {source};
    hops[source.index()] = 0;
    for (size_t next = 0; next < order.size(); ++next) {
      // All links into a node from the level before come ahead of its own turn.
      const NodeId at = order[next];
      for (const LinkId link : topology_.OutLinks(at)) {
        const size_t head = topology_.head(link).index();
        const WideInteger through = distance[at.index()] + cost_[link.index()];
        if (hops[head] < 0) {
          hops[head] = hops[at.index()] + 1;
          order.push_back(topology_.head(link));
        } else if (hops[head] != hops[at.index()] + 1 || distance[head] <= through) {
          continue;
        }
        tree[head] = link;
        distance[head] = through;
      }
    }
    AddLoad(source, tree, order);
    return tree;
  }

 private:
  void AddLoad(NodeId source, const Tree& tree, const std::vector<NodeId>& order) {
    std::vector<int64_t> below(tree.size(), 0);
    for (size_t i = order.size(); i-- > 1;) {
      const NodeId node = order[i];
      below[node.index()] += demand_(source.value, node.value);
      const LinkId link = tree[node.index()];
      below[topology_.tail(link).index()] += below[node.index()];
      cost_[link.index()] += WideInteger{below[node.index()]} * slowness_[link.index()];
    }
  }

  const Topology& topology_;
  const DemandTable& demand_;
  std::vector<int64_t> slowness_;  // 2^16 of the fastest link
  std::vector<WideInteger> cost_;  // load x slowness
};

}  // namespace

Result<Routed> RouteSssp(const Topology& topology, const RouterOptions& options) {
  const DemandTable demand(topology.num_ranks(), options.demand);
  LoadAwareTrees trees(topology, demand);
  RoutingBuilder builder(topology.num_ranks(), 1);
  for (const NodeId source : topology.Ranks()) {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    const Tree tree = trees.Next(source);
    if (const Status added = AddTreePaths(topology, demand, source, tree, builder); !added)
      return tl::unexpected(added.error());
  }
  return Routed{std::move(builder).Finish()};
}

}  // namespace tutti

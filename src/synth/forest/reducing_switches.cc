#include "forest/reducing_switches.h"

#include <algorithm>
#include <utility>

#include "tutti/base/check.h"

namespace tutti::forest {

SwitchesAsRanks WithSwitchesAsRanks(const Topology& topology, const Rational& rate) {
  const auto counts = [&](NodeId node) {
    if (topology.is_rank(node) || !topology.reduces(node)) return topology.is_rank(node);
    Rational in, out;
    for (LinkId link : topology.InLinks(node)) in += Rational(topology.bandwidth(link));
    for (LinkId link : topology.OutLinks(node)) out += Rational(topology.bandwidth(link));
    return std::min(in, out) >= rate;
  };
  std::vector<NodeId> node_of, rest;
  for (NodeId node : topology.Nodes()) (counts(node) ? node_of : rest).push_back(node);
  const auto as_ranks = static_cast<int32_t>(node_of.size());
  node_of.insert(node_of.end(), rest.begin(), rest.end());
  std::vector<NodeId> place(node_of.size());
  for (size_t i = 0; i < node_of.size(); ++i)
    place[node_of[i].index()] = NodeId{static_cast<int32_t>(i)};
  Topology::Builder builder(as_ranks, topology.num_nodes() - as_ranks);
  std::vector<LinkId> link_of;
  for (size_t i = 0; i < node_of.size(); ++i)
    for (LinkId link : topology.OutLinks(node_of[i])) {
      builder.AddLink(NodeId{static_cast<int32_t>(i)}, place[topology.head(link).index()],
                      topology.spec(link));
      link_of.push_back(link);
    }
  builder.CopyHostLimits(topology);
  Result<Topology> built = std::move(builder).Build();
  TUTTI_CHECK(built.has_value());  // what was valid stays valid
  return {*std::move(built), topology.num_ranks(), std::move(node_of), std::move(link_of)};
}

std::vector<RoutedTree> OnRealNodes(const SwitchesAsRanks& from, std::vector<RoutedTree> trees) {
  std::vector<bool> leads_on(from.node_of.size());
  for (RoutedTree& tree : trees) {
    leads_on.assign(leads_on.size(), false);
    // Tails stand before heads, so from the last to the first all that a head leads to is known.
    std::vector<RoutedBranch> kept;
    for (auto branch = tree.branches.rbegin(); branch != tree.branches.rend(); ++branch) {
      if (branch->head.value >= from.num_roots && !leads_on[branch->head.index()]) continue;
      leads_on[branch->tail.index()] = true;
      branch->tail = from.node_of[branch->tail.index()];
      branch->head = from.node_of[branch->head.index()];
      for (LinkId& link : branch->links) link = from.link_of[link.index()];
      kept.push_back(std::move(*branch));
    }
    std::reverse(kept.begin(), kept.end());
    tree.branches = std::move(kept);
    tree.root = from.node_of[tree.root.index()];
  }
  return trees;
}

}  // namespace tutti::forest

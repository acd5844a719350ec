#include "tutti/topo/group_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace tutti {
namespace {

constexpr int32_t kGone = -1;

// Nodes of the group's network: its ranks first, then what forwards.
Result<std::vector<NodeId>> NodesOf(const Topology& topology, std::span<const NodeId> ranks,
                                    const std::function<bool(NodeId)>& leave_out) {
  if (ranks.empty()) return InvalidArgument("a group needs at least one rank");
  std::vector<NodeId> nodes(ranks.begin(), ranks.end());
  std::vector<bool> taken(static_cast<size_t>(topology.num_nodes()), false);
  for (const NodeId rank : ranks) {
    if (rank.value < 0 || rank.value >= topology.num_ranks())
      return InvalidArgument(
          fmt::format("{} is not a rank; there are {} ranks", rank.value, topology.num_ranks()));
    if (taken[rank.index()])
      return InvalidArgument(fmt::format("rank {} is in the group twice", rank.value));
    taken[rank.index()] = true;
  }
  for (const NodeId node : topology.Nodes())
    if (!taken[node.index()] && !leave_out(node)) nodes.push_back(node);
  return nodes;
}

// Nodes reached from `start`, along the links or against them.
std::vector<bool> Reached(const Topology& topology, const std::vector<int32_t>& place, NodeId start,
                          bool along) {
  std::vector<bool> reached(static_cast<size_t>(topology.num_nodes()), false);
  std::vector<NodeId> queue{start};
  reached[start.index()] = true;
  const auto visit = [&](NodeId node) {
    if (place[node.index()] == kGone || reached[node.index()]) return;
    reached[node.index()] = true;
    queue.push_back(node);
  };
  for (size_t i = 0; i < queue.size(); ++i) {
    if (along) {
      for (const LinkId link : topology.OutLinks(queue[i])) visit(topology.head(link));
    } else {
      for (const LinkId link : topology.InLinks(queue[i])) visit(topology.tail(link));
    }
  }
  return reached;
}

}  // namespace

Result<GroupNetwork> MakeGroupNetwork(const Topology& topology, std::span<const NodeId> ranks,
                                      const std::function<bool(NodeId)>& leave_out) {
  Result<std::vector<NodeId>> nodes = NodesOf(topology, ranks, leave_out);
  if (!nodes) return tl::unexpected(nodes.error());
  std::vector<int32_t> place(static_cast<size_t>(topology.num_nodes()), kGone);
  for (size_t i = 0; i < nodes->size(); ++i) place[(*nodes)[i].index()] = static_cast<int32_t>(i);

  // What forwards only stays where it is on a path from rank to rank.
  const std::vector<bool> from = Reached(topology, place, ranks[0], true);
  const std::vector<bool> to = Reached(topology, place, ranks[0], false);
  for (const NodeId rank : ranks) {
    if (from[rank.index()] && to[rank.index()]) continue;
    const bool there = !from[rank.index()];
    const NodeId tail = there ? ranks[0] : rank, head = there ? rank : ranks[0];
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("rank {} does not reach rank {} without the ranks that take no part",
                    topology.node_name(tail), topology.node_name(head)));
  }
  std::erase_if(*nodes, [&](NodeId node) { return !from[node.index()] || !to[node.index()]; });
  std::fill(place.begin(), place.end(), kGone);
  for (size_t i = 0; i < nodes->size(); ++i) place[(*nodes)[i].index()] = static_cast<int32_t>(i);

  const auto is_in_place = [&] {
    for (size_t i = 0; i < nodes->size(); ++i)
      if ((*nodes)[i].index() != i) return false;
    return ranks.size() == static_cast<size_t>(topology.num_ranks());
  };
  if (nodes->size() == place.size() && is_in_place()) {
    std::vector<LinkId> links;
    for (const LinkId link : topology.Links()) links.push_back(link);
    return GroupNetwork{topology, *std::move(nodes), std::move(links)};
  }
  const auto num_ranks = static_cast<int32_t>(ranks.size());
  Topology::Builder builder(num_ranks, static_cast<int32_t>(nodes->size()) - num_ranks);
  std::vector<LinkId> links;
  const auto tail = [&](LinkId link) { return place[topology.tail(link).index()]; };
  const auto head = [&](LinkId link) { return place[topology.head(link).index()]; };
  for (const LinkId link : topology.Links()) {
    if (tail(link) == kGone || head(link) == kGone) continue;
    builder.AddLink(NodeId{tail(link)}, NodeId{head(link)}, topology.spec(link));
    links.push_back(link);
  }
  // The order of Topology: by tail, ties in the order of AddLink.
  std::stable_sort(links.begin(), links.end(),
                   [&](LinkId a, LinkId b) { return tail(a) < tail(b); });
  std::vector<std::string> names;
  for (const NodeId node : *nodes) names.push_back(topology.node_name(node));
  builder.SetNodeNames(std::move(names));
  for (int32_t i = 0; i < num_ranks; ++i)
    if (const auto limit = topology.host_bandwidth(ranks[static_cast<size_t>(i)]))
      builder.SetHostBandwidth(NodeId{i}, *limit);
  for (size_t i = ranks.size(); i < nodes->size(); ++i)
    if (!topology.is_rank((*nodes)[i]) && topology.reduces((*nodes)[i]))
      builder.SetReduces(NodeId{static_cast<int32_t>(i)});
  builder.SetName(fmt::format("{} ranks of {}", num_ranks,
                              topology.name().empty() ? "a network" : topology.name()));
  Result<Topology> built = std::move(builder).Build();
  if (!built) return tl::unexpected(built.error());
  return GroupNetwork{*std::move(built), *std::move(nodes), std::move(links)};
}

}  // namespace tutti

#include "reducing_partition.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tutti {
namespace {

// The network with the switches that reduce as ranks behind the real ones.
struct Renumbered {
  CutNetwork network;
  std::vector<NodeId> place;  // of the topology's nodes
};

Renumbered WithReducersAsRanks(const Topology& topology, const CutNetwork& network) {
  Renumbered renumbered{network, std::vector<NodeId>(static_cast<size_t>(network.num_nodes))};
  int32_t next = 0;
  for (const bool reduces : {true, false}) {
    for (NodeId node : topology.Nodes())
      if (topology.reduces(node) == reduces) renumbered.place[node.index()] = NodeId{next++};
    if (reduces) renumbered.network.num_ranks = next;
  }
  for (CutNetwork::Arc& arc : renumbered.network.arcs) {
    arc.tail = renumbered.place[arc.tail.index()];
    arc.head = renumbered.place[arc.head.index()];
  }
  return renumbered;
}

int64_t PartsWithRanks(const Partition& partition, int32_t num_ranks) {
  std::vector<bool> has(static_cast<size_t>(partition.num_parts), false);
  for (int32_t rank = 0; rank < num_ranks; ++rank)
    has[static_cast<size_t>(partition.part_of_rank[static_cast<size_t>(rank)])] = true;
  return std::count(has.begin(), has.end(), true);
}

// Each switch that reduces joins the part that it has most capacity to, one alone where it has none.
Partition Joined(const Topology& topology, const CutNetwork& network, const Partition& ranks,
                 const Renumbered& renumbered) {
  Partition partition = ranks;
  partition.part_of_rank.resize(static_cast<size_t>(renumbered.network.num_ranks), -1);
  for (NodeId node : topology.Nodes()) {
    if (topology.is_rank(node) || !topology.reduces(node)) continue;
    std::vector<WideCapacity> to(static_cast<size_t>(ranks.num_parts), 0);
    for (const CutNetwork::Arc& arc : network.arcs)
      if (arc.tail == node && topology.is_rank(arc.head))
        to[static_cast<size_t>(ranks.part_of_rank[arc.head.index()])] += arc.capacity;
    const auto most = std::max_element(to.begin(), to.end());
    const int64_t part = *most > 0 ? most - to.begin() : partition.num_parts++;
    partition.part_of_rank[renumbered.place[node.index()].index()] = static_cast<int32_t>(part);
  }
  return partition;
}

}  // namespace

std::optional<ReducingPartition> TightestReducingPartition(const Topology& topology,
                                                           const CutNetwork& network) {
  const Renumbered renumbered = WithReducersAsRanks(topology, network);
  std::optional<ReducingPartition> best;
  const auto try_one = [&](const Partition& partition) {
    const ReducingPartition limit{PartsWithRanks(partition, network.num_ranks),
                                  CapacityIntoParts(renumbered.network, partition)};
    if (limit.num_parts >= 2 &&
        (!best || best->capacity * (limit.num_parts - 1) > limit.capacity * (best->num_parts - 1)))
      best = limit;
  };
  try_one(TightestPartition(renumbered.network));
  try_one(Joined(topology, network, TightestPartition(network), renumbered));
  return best;
}

}  // namespace tutti

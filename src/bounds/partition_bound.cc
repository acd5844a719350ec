#include "partition_bound.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tutti/base/check.h"

namespace tutti {
namespace {

using Flow = MaxFlow<WideCapacity>;
constexpr WideCapacity kUnlimited = Flow::kLargest / 4;

// The network's arcs times `weight`, then one without capacity from each rank to a node more, the
// target.
std::vector<Flow::Arc> ArcsWithTarget(const CutNetwork& network, WideCapacity weight) {
  std::vector<Flow::Arc> arcs;
  for (const CutNetwork::Arc& arc : network.arcs)
    arcs.push_back({arc.tail, arc.head, weight * arc.capacity});
  for (int32_t rank = 0; rank < network.num_ranks; ++rank)
    arcs.push_back({NodeId{rank}, NodeId{network.num_nodes}, 0});
  return arcs;
}
int32_t ArcToTarget(const CutNetwork& network, NodeId rank) {
  return static_cast<int32_t>(network.arcs.size()) + rank.value;
}

// For one `weight` and `price`: the partition with the least sum over its parts of
// weight * capacity into the part - price.
class Partitioner {
 public:
  Partitioner(const CutNetwork& network, WideCapacity weight, WideCapacity price)
      : network_(network),
        price_(price),
        target_{network.num_nodes},
        flow_(network.num_nodes + 1, ArcsWithTarget(network, weight)),
        share_(static_cast<size_t>(network.num_ranks), 0),
        part_(share_.size()) {
    std::iota(part_.begin(), part_.end(), 0);
  }

  Partition Run() {
    const auto n = static_cast<int32_t>(part_.size());
    for (int32_t rank = 0; rank < n; ++rank) flow_.SetUnlimitedSupply(NodeId{rank});
    for (int32_t rank = 0; rank < n; ++rank) Place(NodeId{rank});
    return Collect();
  }

 private:
  // The share of a rank is the least f(S) - shares of the others in S, over the sets S of placed
  // ranks that hold it. As a cut: whoever has a positive share and is left out costs it, whoever
  // has a negative one and is in costs that, ranks not placed yet cannot be in, switches may.
  void Place(NodeId rank) {
    flow_.SetSupply(rank, 0);
    flow_.SetCapacity(ArcToTarget(network_, rank), kUnlimited);
    const WideCapacity cut = flow_.Run(target_);
    TUTTI_CHECK(cut < kUnlimited);
    WideCapacity positive = 0;
    for (int32_t other = 0; other < rank.value; ++other)
      positive += std::max<WideCapacity>(0, share_[static_cast<size_t>(other)]);
    share_[rank.index()] = cut - positive - price_;
    const std::vector<bool> inside = flow_.SinkSide();
    const WideCapacity share = share_[rank.index()];
    flow_.SetCapacity(ArcToTarget(network_, rank), std::max<WideCapacity>(0, share));
    flow_.SetSupply(rank, std::max<WideCapacity>(0, -share));
    Join(rank, inside);
  }

  // Sets whose shares add up to f may be joined where they meet.
  void Join(NodeId rank, const std::vector<bool>& inside) {
    std::vector<bool> meets(part_.size(), false);
    for (int32_t other = 0; other <= rank.value; ++other)
      if (inside[static_cast<size_t>(other)])
        meets[static_cast<size_t>(part_[static_cast<size_t>(other)])] = true;
    for (int32_t other = 0; other <= rank.value; ++other) {
      int32_t& part = part_[static_cast<size_t>(other)];
      if (meets[static_cast<size_t>(part)]) part = rank.value;
    }
  }

  Partition Collect() {
    Partition partition;
    std::vector<int32_t> number(part_.size(), -1);
    for (int32_t part : part_) {
      int32_t& known = number[static_cast<size_t>(part)];
      if (known < 0) known = static_cast<int32_t>(partition.num_parts++);
      partition.part_of_rank.push_back(known);
    }
    partition.capacity = CapacityIntoParts(network_, partition);
    return partition;
  }

  const CutNetwork& network_;
  WideCapacity price_;
  NodeId target_;
  Flow flow_;
  std::vector<WideCapacity> share_;
  std::vector<int32_t> part_;  // named by one of its ranks
};

}  // namespace

WideCapacity CapacityIntoParts(const CutNetwork& network, const Partition& partition) {
  WideCapacity capacity = 0;
  if (network.num_nodes == network.num_ranks) {
    for (const CutNetwork::Arc& arc : network.arcs)
      if (partition.part_of_rank[arc.tail.index()] != partition.part_of_rank[arc.head.index()])
        capacity += arc.capacity;
    return capacity;
  }
  Flow flow(network.num_nodes + 1, ArcsWithTarget(network, 1));
  for (int32_t part = 0; part < partition.num_parts; ++part) {
    for (int32_t rank = 0; rank < network.num_ranks; ++rank) {
      const bool inside = partition.part_of_rank[static_cast<size_t>(rank)] == part;
      flow.SetCapacity(ArcToTarget(network, NodeId{rank}), inside ? kUnlimited : 0);
      if (inside)
        flow.SetSupply(NodeId{rank}, 0);
      else
        flow.SetUnlimitedSupply(NodeId{rank});
    }
    capacity += flow.Run(NodeId{network.num_nodes});
  }
  return capacity;
}

Partition EachAlone(const CutNetwork& network) {
  Partition alone;
  alone.num_parts = network.num_ranks;
  alone.part_of_rank.resize(static_cast<size_t>(network.num_ranks));
  std::iota(alone.part_of_rank.begin(), alone.part_of_rank.end(), 0);
  alone.capacity = CapacityIntoParts(network, alone);
  return alone;
}

Partition TightestPartition(const CutNetwork& network) {
  TUTTI_CHECK(network.num_ranks >= 2);
  Partition best = EachAlone(network);
  for (;;) {
    Partition next = Partitioner(network, best.num_parts - 1, best.capacity).Run();
    // One part alone is no limit.
    if (next.num_parts < 2 ||
        next.capacity * (best.num_parts - 1) >= best.capacity * (next.num_parts - 1))
      return best;
    best = std::move(next);
  }
}

}  // namespace tutti

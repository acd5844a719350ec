#include "partition_bound.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tutti/base/check.h"

namespace tutti {
namespace {

// For one `weight` and `price`: the partition with the least sum over its parts of
// weight * capacity into the part - price.
class Partitioner {
 public:
  Partitioner(const CutNetwork& network, WideCapacity weight, WideCapacity price)
      : network_(network),
        weight_(weight),
        price_(price),
        target_{network.num_nodes},
        flow_(network.num_nodes + 1, Arcs()),
        share_(static_cast<size_t>(network.num_nodes), 0),
        part_(share_.size()) {
    std::iota(part_.begin(), part_.end(), 0);
  }

  Partition Run() {
    const auto n = static_cast<int32_t>(part_.size());
    for (int32_t node = 0; node < n; ++node) flow_.SetUnlimitedSupply(NodeId{node});
    for (int32_t node = 0; node < n; ++node) Place(NodeId{node});
    return Collect();
  }

 private:
  using Flow = MaxFlow<WideCapacity>;

  // The network's, and one from each node to the target.
  std::vector<Flow::Arc> Arcs() const {
    std::vector<Flow::Arc> arcs;
    for (const CutNetwork::Arc& arc : network_.arcs)
      arcs.push_back({arc.tail, arc.head, weight_ * arc.capacity});
    for (int32_t node = 0; node < network_.num_nodes; ++node)
      arcs.push_back({NodeId{node}, target_, 0});
    return arcs;
  }
  int32_t ArcToTarget(NodeId node) const {
    return static_cast<int32_t>(network_.arcs.size()) + node.value;
  }

  // The share of a node is the least f(S) - shares of the others in S, over the sets S of placed
  // nodes that hold it. As a cut: whoever has a positive share and is left out costs it, whoever
  // has a negative one and is in costs that, and nodes not placed yet cannot be in.
  void Place(NodeId node) {
    const WideCapacity all = Flow::kLargest / 4;
    flow_.SetSupply(node, 0);
    flow_.SetCapacity(ArcToTarget(node), all);
    const WideCapacity cut = flow_.Run(target_);
    TUTTI_CHECK(cut < all);
    WideCapacity positive = 0;
    for (int32_t other = 0; other < node.value; ++other)
      positive += std::max<WideCapacity>(0, share_[static_cast<size_t>(other)]);
    share_[node.index()] = cut - positive - price_;
    const std::vector<bool> inside = flow_.SinkSide();
    const WideCapacity share = share_[node.index()];
    flow_.SetCapacity(ArcToTarget(node), std::max<WideCapacity>(0, share));
    flow_.SetSupply(node, std::max<WideCapacity>(0, -share));
    Join(node, inside);
  }

  // Sets whose shares add up to f may be joined where they meet.
  void Join(NodeId node, const std::vector<bool>& inside) {
    std::vector<bool> meets(part_.size(), false);
    for (int32_t other = 0; other <= node.value; ++other)
      if (inside[static_cast<size_t>(other)])
        meets[static_cast<size_t>(part_[static_cast<size_t>(other)])] = true;
    for (int32_t other = 0; other <= node.value; ++other) {
      int32_t& part = part_[static_cast<size_t>(other)];
      if (meets[static_cast<size_t>(part)]) part = node.value;
    }
  }

  Partition Collect() {
    Partition partition;
    std::vector<int32_t> number(part_.size(), -1);
    for (int32_t part : part_) {
      int32_t& known = number[static_cast<size_t>(part)];
      if (known < 0) known = static_cast<int32_t>(partition.num_parts++);
      partition.part_of_node.push_back(known);
    }
    for (const CutNetwork::Arc& arc : network_.arcs)
      if (partition.part_of_node[arc.tail.index()] != partition.part_of_node[arc.head.index()])
        partition.capacity += arc.capacity;
    return partition;
  }

  const CutNetwork& network_;
  WideCapacity weight_, price_;
  NodeId target_;
  Flow flow_;
  std::vector<WideCapacity> share_;
  std::vector<int32_t> part_;  // named by one of its nodes
};

}  // namespace

Partition TightestPartition(const CutNetwork& network) {
  TUTTI_CHECK(network.num_nodes == network.num_ranks && network.num_ranks >= 2);
  Partition best;
  best.num_parts = network.num_ranks;
  best.capacity = network.total_capacity;
  best.part_of_node.resize(static_cast<size_t>(network.num_ranks));
  std::iota(best.part_of_node.begin(), best.part_of_node.end(), 0);
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

#include "sweep_cuts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "all_pairs.h"
#include "tutti/graph/distance.h"

namespace tutti {
namespace {

constexpr int32_t kDistanceOrders = 16;

// Demand and capacity that cross the border of a growing set of nodes.
class Border {
 public:
  Border(const Topology& topology, const CutNetwork& network, const Collective& collective)
      : topology_(topology),
        network_(network),
        collective_(collective),
        inside_(static_cast<size_t>(topology.num_nodes()), false) {}

  void Add(NodeId node) {
    for (LinkId link : topology_.OutLinks(node))
      Cross(link, topology_.head(link), capacity_out_, capacity_in_);
    for (LinkId link : topology_.InLinks(node))
      Cross(link, topology_.tail(link), capacity_in_, capacity_out_);
    inside_[node.index()] = true;
    if (!topology_.is_rank(node)) return;
    ++ranks_;
    if (collective_.kind() == CollectiveKind::kAllToAll) {
      demand_out_ = demand_in_ = WideCapacity{ranks_} * (topology_.num_ranks() - ranks_);
      return;
    }
    for (NodeId other : topology_.Ranks()) {
      const int64_t to = DemandWeight(collective_, node, other);
      const int64_t from = DemandWeight(collective_, other, node);
      demand_out_ += inside_[other.index()] ? -from : to;
      demand_in_ += inside_[other.index()] ? -to : from;
    }
  }

  // Calls consider(demand, capacity, leaves) for both directions.
  template <class Consider>
  void Offer(const Consider& consider) const {
    consider(demand_out_, capacity_out_, true);
    consider(demand_in_, capacity_in_, false);
  }

 private:
  // A link between the node that joins and `other` stops or starts to cross.
  void Cross(LinkId link, NodeId other, WideCapacity& starts, WideCapacity& stops) {
    const int64_t capacity = network_.arcs[link.index()].capacity;
    if (inside_[other.index()]) {
      stops -= capacity;
    } else {
      starts += capacity;
    }
  }

  const Topology& topology_;
  const CutNetwork& network_;
  const Collective& collective_;
  std::vector<bool> inside_;
  int64_t ranks_ = 0;
  WideCapacity demand_out_ = 0, demand_in_ = 0, capacity_out_ = 0, capacity_in_ = 0;
};

class Search {
 public:
  Search(const Topology& topology, const CutNetwork& network, const Collective& collective)
      : topology_(topology), network_(network), collective_(collective) {}

  void TryPrefixes(const std::vector<NodeId>& order, size_t most) {
    Border border(topology_, network_, collective_);
    for (size_t k = 0; k < most; ++k) {
      border.Add(order[k]);
      border.Offer([&](WideCapacity demand, WideCapacity capacity, bool leaves) {
        // The doubles only spare exact comparisons that are clear.
        if (static_cast<double>(demand) < clear_ * static_cast<double>(capacity)) return;
        const Rational ratio = RationalOf(demand) / RationalOf(capacity);
        if (ratio <= best_ratio_) return;
        best_ratio_ = ratio;
        clear_ = ratio.ToDouble() * (1 - 1e-9);
        best_.inside.assign(static_cast<size_t>(topology_.num_nodes()), !leaves);
        for (size_t i = 0; i <= k; ++i) best_.inside[order[i].index()] = leaves;
        best_.shards_out = demand;
        best_.capacity_out = capacity;
      });
    }
  }

  // All nodes by `key`, ties by index.
  void TryOrder(const std::vector<int32_t>& key) {
    std::vector<NodeId> order;
    for (NodeId node : topology_.Nodes()) order.push_back(node);
    std::stable_sort(order.begin(), order.end(),
                     [&key](NodeId a, NodeId b) { return key[a.index()] < key[b.index()]; });
    TryPrefixes(order, order.size() - 1);
  }

  Cut TakeBest() { return std::move(best_); }

 private:
  const Topology& topology_;
  const CutNetwork& network_;
  const Collective& collective_;
  Cut best_;
  Rational best_ratio_;
  double clear_ = 0;
};

}  // namespace

Cut BestSweepCut(const Topology& topology, const CutNetwork& network,
                 const Collective& collective) {
  Search search(topology, network, collective);
  for (NodeId rank : topology.Ranks()) search.TryPrefixes({rank}, 1);
  const auto size = static_cast<size_t>(topology.num_nodes());
  search.TryOrder(std::vector<int32_t>(size, 0));
  if (topology.grid() && !topology.has_switches()) {
    int32_t stride = topology.num_ranks();
    for (int32_t dim : topology.grid()->dims) {
      stride /= dim;
      std::vector<int32_t> coordinate;
      for (NodeId rank : topology.Ranks()) coordinate.push_back(rank.value / stride % dim);
      search.TryOrder(coordinate);
    }
  }
  const int32_t orders = std::min(kDistanceOrders, topology.num_nodes());
  for (int32_t i = 0; i < orders; ++i) {
    const int64_t node = int64_t{i} * topology.num_nodes() / orders;
    search.TryOrder(DistancesFrom(topology.graph(), NodeId{static_cast<int32_t>(node)}));
  }
  return search.TakeBest();
}

}  // namespace tutti

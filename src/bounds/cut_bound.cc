#include "cut_bound.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tutti/base/progress.h"

namespace tutti {
namespace {

// True when every sum of a sweep stays within MaxFlow<int64_t>::kLargest.
bool FitsNarrow(const CutNetwork& network) {
  return network.total_capacity <= MaxFlow<int64_t>::kLargest / (network.num_ranks + 1);
}

template <class Capacity>
Capacity Gcd(Capacity a, Capacity b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

NodeId RankWithLeastIn(const CutNetwork& network) {
  const std::vector<WideCapacity> in = network.InCapacities();
  const auto least = std::min_element(in.begin(), in.begin() + network.num_ranks);
  return NodeId{static_cast<int32_t>(least - in.begin())};
}

std::vector<bool> AllBut(const CutNetwork& network, NodeId rank) {
  std::vector<bool> inside(static_cast<size_t>(network.num_nodes), true);
  inside[rank.index()] = false;
  return inside;
}

template <class Capacity>
std::vector<typename MaxFlow<Capacity>::Arc> ArcsOf(const CutNetwork& network) {
  std::vector<typename MaxFlow<Capacity>::Arc> arcs;
  arcs.reserve(network.arcs.size() + static_cast<size_t>(network.num_ranks));
  for (const auto& arc : network.arcs) arcs.push_back({arc.tail, arc.head, arc.capacity});
  return arcs;
}

// The largest ratio seen, and the flow network scaled to it: capacity p c, q a rank.
template <class Capacity>
class RatioSearch {
 public:
  // `extra` follows the network's own arcs and is scaled by whoever added them.
  RatioSearch(const CutNetwork& network, int32_t extra_nodes,
              const std::vector<typename MaxFlow<Capacity>::Arc>& arcs)
      : network_(network), flow_(network.num_nodes + extra_nodes, arcs) {}

  // Takes the cut, whose ratio must be the largest so far. `shards` of it must leave.
  void Take(std::vector<bool> inside, int64_t shards) {
    best_ = {std::move(inside), shards, 0};
    best_.capacity_out = network_.CapacityOut(best_.inside);
    const auto out = static_cast<Capacity>(best_.capacity_out);
    const Capacity divisor = Gcd<Capacity>(shards, out);
    p_ = static_cast<Capacity>(shards) / divisor;
    q_ = out / divisor;
    for (size_t a = 0; a < network_.arcs.size(); ++a)
      flow_.SetCapacity(static_cast<int32_t>(a), p_ * network_.arcs[a].capacity);
  }

  Capacity q() const { return q_; }
  MaxFlow<Capacity>& flow() { return flow_; }
  Cut TakeBest() { return std::move(best_); }

  // The nodes that the last run's cut leaves on the side of the supplies.
  std::vector<bool> SupplySide() const {
    std::vector<bool> side = flow_.SinkSide();
    side.flip();
    side.resize(static_cast<size_t>(network_.num_nodes));
    return side;
  }

 private:
  const CutNetwork& network_;
  MaxFlow<Capacity> flow_;
  Capacity p_ = 0, q_ = 0;
  Cut best_;
};

template <class Capacity>
Cut AllGatherCutWith(const CutNetwork& network) {
  RatioSearch<Capacity> search(network, 0, ArcsOf<Capacity>(network));
  std::vector<bool> served(static_cast<size_t>(network.num_ranks), false);
  const auto take = [&](std::vector<bool> inside) {
    const int64_t shards = network.RanksIn(inside);
    search.Take(std::move(inside), shards);
    for (int32_t rank = 0; rank < network.num_ranks; ++rank)
      if (!served[static_cast<size_t>(rank)]) search.flow().SetSupply(NodeId{rank}, search.q());
  };
  const NodeId first = RankWithLeastIn(network);
  take(AllBut(network, first));
  const std::vector<NodeId> order = network.RanksByDistance(first);
  for (const NodeId rank : WithProgress("cuts", order)) {
    for (;;) {
      const Capacity wanted = network.num_ranks * search.q();
      if (search.flow().Run(rank, wanted) == wanted) break;
      take(search.SupplySide());
    }
    search.flow().SetUnlimitedSupply(rank);
    served[rank.index()] = true;
  }
  return search.TakeBest();
}

template <class Capacity>
Cut SmallestRootCutWith(const CutNetwork& network, NodeId root) {
  MaxFlow<Capacity> flow(network.num_nodes, ArcsOf<Capacity>(network));
  Cut best;
  const std::vector<WideCapacity> in = network.InCapacities();
  const auto try_cut = [&](std::vector<bool> inside) {
    const WideCapacity out = network.CapacityOut(inside);
    if (best.shards_out == 0 || out < best.capacity_out) best = {std::move(inside), 1, out};
  };
  flow.SetUnlimitedSupply(root);
  const std::vector<NodeId> order = network.RanksByDistance(root);
  for (const NodeId rank : WithProgress("cuts", order)) {
    if (rank == root) continue;
    if (best.shards_out == 0) try_cut(AllBut(network, rank));
    const auto limit = static_cast<Capacity>(best.capacity_out);
    if (flow.Run(rank, limit) < limit) {
      std::vector<bool> inside = flow.SinkSide();
      inside.flip();
      try_cut(std::move(inside));
    }
    flow.SetUnlimitedSupply(rank);
  }
  return best;
}

template <class Capacity>
Cut ScatterCutWith(const CutNetwork& network, NodeId root) {
  // Each rank but the root passes what it keeps on to one sink behind them all.
  const NodeId sink{network.num_nodes};
  const auto first_extra = static_cast<int32_t>(network.arcs.size());
  auto arcs = ArcsOf<Capacity>(network);
  for (int32_t rank = 0; rank < network.num_ranks; ++rank)
    if (rank != root.value) arcs.push_back({NodeId{rank}, sink, 0});
  RatioSearch<Capacity> search(network, 1, arcs);
  search.flow().SetUnlimitedSupply(root);
  const int32_t others = network.num_ranks - 1;
  const auto take = [&](std::vector<bool> inside) {
    const int64_t shards = network.num_ranks - network.RanksIn(inside);
    search.Take(std::move(inside), shards);
    for (int32_t i = 0; i < others; ++i) search.flow().SetCapacity(first_extra + i, search.q());
  };
  std::vector<bool> only_root(static_cast<size_t>(network.num_nodes), false);
  only_root[root.index()] = true;
  take(std::move(only_root));
  for (;;) {
    const Capacity wanted = others * search.q();
    if (search.flow().Run(sink, wanted) == wanted) return search.TakeBest();
    take(search.SupplySide());
  }
}

}  // namespace

Cut Flipped(Cut cut) {
  cut.inside.flip();
  return cut;
}

Cut AllGatherCut(const CutNetwork& network) {
  return FitsNarrow(network) ? AllGatherCutWith<int64_t>(network)
                             : AllGatherCutWith<WideCapacity>(network);
}
Cut SmallestRootCut(const CutNetwork& network, NodeId root) {
  return FitsNarrow(network) ? SmallestRootCutWith<int64_t>(network, root)
                             : SmallestRootCutWith<WideCapacity>(network, root);
}
Cut ScatterCut(const CutNetwork& network, NodeId root) {
  return FitsNarrow(network) ? ScatterCutWith<int64_t>(network, root)
                             : ScatterCutWith<WideCapacity>(network, root);
}

}  // namespace tutti

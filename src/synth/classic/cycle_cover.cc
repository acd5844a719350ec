#include "classic/cycle_cover.h"

#include <algorithm>
#include <numeric>

namespace tutti::classic {
namespace {

class CycleCover {
 public:
  CycleCover(const Topology& topology, const LinkIndex& index, const std::vector<bool>& used,
             Random& random)
      : index_(index), used_(used), n_(topology.num_ranks()) {
    heads_.resize(static_cast<size_t>(n_));
    for (int32_t rank = 0; rank < n_; ++rank) {
      std::vector<int32_t>& heads = heads_[static_cast<size_t>(rank)];
      for (LinkId link : index.From(NodeId{rank})) {
        const NodeId head = topology.head(link);
        if (!used[link.index()] && topology.is_rank(head)) heads.push_back(head.value);
      }
      for (size_t i = heads.size(); i > 1; --i) std::swap(heads[i - 1], heads[random.Below(i)]);
    }
  }

  std::vector<NodeId> Run() {
    if (!Match()) return {};
    LabelCycles();
    while (num_cycles_ > 1 && JoinSome()) LabelCycles();
    if (num_cycles_ > 1) return {};
    std::vector<NodeId> order;
    for (int32_t rank = 0; static_cast<int32_t>(order.size()) < n_; rank = Next(rank))
      order.push_back(NodeId{rank});
    return order;
  }

 private:
  int32_t& Next(int32_t rank) { return next_[static_cast<size_t>(rank)]; }
  int32_t& Before(int32_t rank) { return before_[static_cast<size_t>(rank)]; }
  int32_t& Cycle(int32_t rank) { return cycle_[static_cast<size_t>(rank)]; }

  bool HasFree(int32_t tail, int32_t head) const {
    for (LinkId link : index_.Between(NodeId{tail}, NodeId{head}))
      if (!used_[link.index()]) return true;
    return false;
  }

  // Augmenting paths, found by a breadth-first search from each unmatched rank.
  bool Match() {
    next_.assign(static_cast<size_t>(n_), -1);
    before_.assign(static_cast<size_t>(n_), -1);
    std::vector<int32_t> tail_of(static_cast<size_t>(n_), -1), seen(static_cast<size_t>(n_), -1);
    for (int32_t root = 0; root < n_; ++root)
      if (!Augment(root, tail_of, seen)) return false;
    return true;
  }

  bool Augment(int32_t root, std::vector<int32_t>& tail_of, std::vector<int32_t>& seen) {
    std::vector<int32_t> queue{root};
    for (size_t at = 0; at < queue.size(); ++at) {
      const int32_t tail = queue[at];
      for (int32_t head : heads_[static_cast<size_t>(tail)]) {
        if (seen[static_cast<size_t>(head)] == root) continue;
        seen[static_cast<size_t>(head)] = root;
        tail_of[static_cast<size_t>(head)] = tail;
        if (Before(head) >= 0) {
          queue.push_back(Before(head));
          continue;
        }
        for (int32_t free = head; free >= 0;) {  // flip the path back to the root
          const int32_t owner = tail_of[static_cast<size_t>(free)];
          const int32_t released = Next(owner);
          Next(owner) = free;
          Before(free) = owner;
          free = owner == root ? -1 : released;
        }
        return true;
      }
    }
    return false;
  }

  void LabelCycles() {
    cycle_.assign(static_cast<size_t>(n_), -1);
    num_cycles_ = 0;
    for (int32_t first = 0; first < n_; ++first) {
      if (Cycle(first) >= 0) continue;
      for (int32_t rank = first; Cycle(rank) < 0; rank = Next(rank)) Cycle(rank) = num_cycles_;
      ++num_cycles_;
    }
    parent_.resize(static_cast<size_t>(num_cycles_));
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  int32_t Root(int32_t cycle) {
    while (parent_[static_cast<size_t>(cycle)] != cycle)
      cycle = parent_[static_cast<size_t>(cycle)] =
          parent_[static_cast<size_t>(parent_[static_cast<size_t>(cycle)])];
    return cycle;
  }

  // Each exchange joins two cycles that were apart, so none splits one.
  bool JoinSome() {
    bool joined = false;
    for (int32_t u = 0; u < n_; ++u) {
      for (int32_t y : heads_[static_cast<size_t>(u)]) {
        const int32_t v = Next(u), x = Before(y);
        const int32_t mine = Root(Cycle(u)), other = Root(Cycle(y));
        if (mine == other || !HasFree(x, v)) continue;
        Next(u) = y;
        Before(y) = u;
        Next(x) = v;
        Before(v) = x;
        parent_[static_cast<size_t>(other)] = mine;
        joined = true;
      }
    }
    return joined;
  }

  const LinkIndex& index_;
  const std::vector<bool>& used_;
  int32_t n_;
  std::vector<std::vector<int32_t>> heads_;
  std::vector<int32_t> next_, before_, cycle_, parent_;
  int32_t num_cycles_ = 0;
};

}  // namespace

std::vector<NodeId> JoinCycleCover(const Topology& topology, const LinkIndex& index,
                                   const std::vector<bool>& used, Random& random) {
  return CycleCover(topology, index, used, random).Run();
}

}  // namespace tutti::classic

#include "forest/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "forest/exchange_packing.h"
#include "forest/rank_shifts.h"
#include "forest/shifted_packing.h"
#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/index.h"
#include "tutti/graph/max_flow.h"

namespace tutti::forest {
namespace {

// So many are packed by flows at all.
constexpr int32_t kMaxPackedRanks = 256;
// Branches, a flow or more each, that take about a second.
constexpr int64_t kMaxQuickBranches = int64_t{1} << 15;

class Packer {
 public:
  explicit Packer(const TreeNetwork& network)
      : n_(network.num_ranks), unstarted_(network.trees_of), lanes_of_(Index(n_)) {
    for (const auto& [ends, lane] : network.lanes) {
      const auto hops = static_cast<int32_t>(lane.paths.front().links.size());
      lanes_of_[Index(ends.first)].push_back(lanes_.size());
      lanes_.push_back({ends.first, ends.second, hops, lane.trees()});
    }
    // Each rank's own next ranks first, so that the trees of all use different lanes.
    for (int32_t rank = 0; rank < n_; ++rank)
      std::sort(lanes_of_[Index(rank)].begin(), lanes_of_[Index(rank)].end(),
                [&](size_t a, size_t b) {
                  return (lanes_[a].head - rank + n_) % n_ < (lanes_[b].head - rank + n_) % n_;
                });
  }

  Result<std::vector<PackedTree>> Run() {
    for (int32_t root = 0; root < n_; ++root) {
      if (unstarted_[Index(root)] == 0) continue;
      Start(root);
      while (!open_.empty()) {
        Class grown = std::move(open_.back());
        open_.pop_back();
        if (!MakeFlow() || !Grow(grown)) return tl::unexpected(CancelledError());
        done_.push_back(std::move(grown.tree));
      }
    }
    return std::move(done_);
  }

 private:
  struct LaneLeft {
    int32_t tail, head, hops;
    int64_t left;
  };
  struct Class {
    PackedTree tree;
    std::vector<int32_t> depth;  // -1: not in it
    std::vector<int32_t> ranks;  // by depth
  };

  void Start(int32_t root) {
    Class started{.tree = {.root = NodeId{root}, .copies = unstarted_[Index(root)], .branches = {}},
                  .depth = std::vector<int32_t>(Index(n_), -1),
                  .ranks = {root}};
    started.depth[Index(root)] = 0;
    unstarted_[Index(root)] = 0;
    open_.push_back(std::move(started));
  }

  // Flow over all classes but the one that grows.
  bool MakeFlow() {
    std::vector<MaxFlow<int64_t>::Arc> arcs;
    for (const LaneLeft& lane : lanes_)
      arcs.push_back({NodeId{lane.tail}, NodeId{lane.head}, lane.left});
    others_ = 0;
    for (size_t k = 0; k < open_.size(); ++k)
      for (const int32_t rank : open_[k].ranks)
        arcs.push_back({NodeId{n_ + static_cast<int32_t>(k)}, NodeId{rank}, open_[k].tree.copies});
    flow_.emplace(n_ + static_cast<int32_t>(open_.size()), arcs);
    for (int32_t rank = 0; rank < n_; ++rank) {
      flow_->SetSupply(NodeId{rank}, unstarted_[Index(rank)]);
      others_ += unstarted_[Index(rank)];
    }
    for (size_t k = 0; k < open_.size(); ++k) {
      flow_->SetSupply(NodeId{n_ + static_cast<int32_t>(k)}, open_[k].tree.copies);
      others_ += open_[k].tree.copies;
    }
    return !CancelRequested();
  }

  // [mu] How many of `copies` the lane may serve.
  int64_t Serves(const LaneLeft& lane, int64_t copies) {
    const int64_t wanted = std::min(copies, lane.left);
    if (wanted == 0) return 0;
    flow_->SetUnlimitedSupply(NodeId{lane.tail});
    const int64_t reached = flow_->Run(NodeId{lane.head}, others_ + wanted) - others_;
    flow_->SetSupply(NodeId{lane.tail}, unstarted_[Index(lane.tail)]);
    return std::max<int64_t>(reached, 0);
  }

  void Take(Class& grown, size_t lane) {
    LaneLeft& taken = lanes_[lane];
    taken.left -= grown.tree.copies;
    flow_->SetCapacity(static_cast<int32_t>(lane), taken.left);
    grown.tree.branches.push_back({taken.tail, taken.head});
    const int32_t depth = grown.depth[Index(taken.tail)] + taken.hops;
    grown.depth[Index(taken.head)] = depth;
    const auto at = std::upper_bound(
        grown.ranks.begin(), grown.ranks.end(), depth,
        [&](int32_t value, int32_t rank) { return value < grown.depth[Index(rank)]; });
    grown.ranks.insert(at, taken.head);
  }

  bool Grow(Class& grown) {
    // What a lane serves only becomes less as the class grows.
    std::vector<int64_t> most(lanes_.size(), grown.tree.copies);
    while (grown.ranks.size() < Index(n_)) {
      if (CancelRequested()) return false;
      if (const std::optional<size_t> lane = LowestForAll(grown, most)) {
        Take(grown, *lane);
        continue;
      }
      const size_t lane = ServesMost(grown, most);
      Class rest = grown;
      rest.tree.copies -= most[lane];
      grown.tree.copies = most[lane];
      for (int64_t& value : most) value = std::min(value, grown.tree.copies);
      open_.push_back(std::move(rest));
      MakeFlow();
      Take(grown, lane);
    }
    return true;
  }

  std::optional<size_t> LowestForAll(const Class& grown, std::vector<int64_t>& most) {
    for (const int32_t rank : grown.ranks)
      for (const size_t lane : lanes_of_[Index(rank)]) {
        if (grown.depth[Index(lanes_[lane].head)] >= 0 || most[lane] < grown.tree.copies) continue;
        most[lane] = Serves(lanes_[lane], grown.tree.copies);
        if (most[lane] == grown.tree.copies) return lane;
      }
    return std::nullopt;
  }

  size_t ServesMost(const Class& grown, std::vector<int64_t>& most) {
    for (;;) {
      std::optional<size_t> best;
      for (const int32_t rank : grown.ranks)
        for (const size_t lane : lanes_of_[Index(rank)])
          if (grown.depth[Index(lanes_[lane].head)] < 0 && (!best || most[lane] > most[*best]))
            best = lane;
      TUTTI_CHECK(best.has_value() && most[*best] > 0);
      const int64_t now = Serves(lanes_[*best], most[*best]);
      if (std::exchange(most[*best], now) == now) return *best;
    }
  }

  const int32_t n_;
  std::vector<int64_t> unstarted_;  // of each root
  std::vector<std::vector<size_t>> lanes_of_;
  std::vector<LaneLeft> lanes_;
  std::vector<Class> open_;
  std::vector<PackedTree> done_;
  std::optional<MaxFlow<int64_t>> flow_;
  int64_t others_ = 0;
};

}  // namespace

Result<std::vector<PackedTree>> PackForest(const TreeNetwork& network, const Topology& topology,
                                           Effort effort) {
  if (network.num_ranks > kFewRanks) {
    std::vector<RankShifts> ways;
    const std::optional<int32_t> shift = SmallestShift(network);
    if (shift != 1)
      if (auto translations = RankShifts::Translating(topology, network))
        ways.push_back(*std::move(translations));
    if (shift) ways.push_back(RankShifts::By(network.num_ranks, *shift));
    for (const RankShifts& shifts : ways) {
      if (auto shifted = PackShifted(network, shifts)) return *std::move(shifted);
      if (auto exchanged = PackByExchange(network, shifts)) return *std::move(exchanged);
    }
    if (effort == Effort::kQuick && network.total() * network.num_ranks > kMaxQuickBranches)
      return MakeError(ErrorCode::kInfeasible, "trees of so many ranks take many flows");
  }
  if (network.num_ranks > kMaxPackedRanks)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'forest' packs trees of at most {} ranks where they are neither "
                                 "equal boxes nor translated onto each other, the network has {}",
                                 kMaxPackedRanks, network.num_ranks));
  return Packer(network).Run();
}

}  // namespace tutti::forest

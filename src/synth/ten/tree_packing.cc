#include "ten/tree_packing.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/progress.h"
#include "tutti/base/random.h"

namespace tutti::ten {
namespace {

constexpr int kScaleBits = 20;
constexpr int64_t kScale = int64_t{1} << kScaleBits;
// A load that is the part f of the largest counts f to the power of 2^sharpness.
constexpr int kMinSharpness = 5, kMaxSharpness = 10;

class Packer {
 public:
  explicit Packer(const PackingProblem& problem)
      : problem_(problem),
        topology_(problem.topology),
        load_(static_cast<size_t>(topology_.num_links()), 0),
        length_(load_.size(), 0),
        random_(problem.seed) {
    trees_.resize(problem.root.size());
  }

  Result<std::vector<ChunkTrees>> Run() {
    for (size_t chunk = 0; chunk < trees_.size(); ++chunk) Take(chunk);
    std::vector<ChunkTrees> best = trees_;
    int64_t best_most = Most();
    ProgressScope progress("packing trees", problem_.passes);
    for (int32_t pass = 0; pass < problem_.passes; ++pass, progress.Add(1)) {
      sharpness_ = kMinSharpness + pass * (kMaxSharpness - kMinSharpness) / problem_.passes;
      for (size_t chunk = 0; chunk < trees_.size(); ++chunk) {
        if (CancelRequested()) return tl::unexpected(CancelledError());
        AddLoad(chunk, -1);
        Take(chunk);
      }
      if (Most() >= best_most) continue;
      best = trees_;
      best_most = Most();
    }
    return best;
  }

 private:
  struct Entry {
    int64_t key;
    uint64_t tie;
    int64_t depth;
    LinkId link;
    NodeId rank;  // that joins
    bool operator>(const Entry& other) const {
      return std::tie(key, tie, link) > std::tie(other.key, other.tie, other.link);
    }
  };

  int64_t Most() const { return *std::max_element(load_.begin(), load_.end()); }

  void AddLoad(size_t chunk, int64_t sign) {
    const std::vector<int64_t>& hold = problem_.hold_ps;
    const ChunkTrees& trees = trees_[chunk];
    for (NodeId rank : topology_.Ranks()) {
      if (rank == trees.root) continue;
      for (LinkId link : {trees.up[rank.index()], trees.down[rank.index()]})
        load_[link.index()] += sign * hold[link.index()];
    }
  }

  // A link weighs its time for a chunk, and up to 2^16 times as much as it fills up.
  void FindLengths() {
    const std::vector<int64_t>& hold = problem_.hold_ps;
    const int64_t longest = *std::max_element(hold.begin(), hold.end());
    int64_t most = 1;
    for (size_t l = 0; l < load_.size(); ++l) most = std::max(most, load_[l] + hold[l]);
    for (size_t l = 0; l < load_.size(); ++l) {
      __extension__ using Wide = __int128;
      int64_t fill = static_cast<int64_t>(static_cast<Wide>(load_[l] + hold[l]) * kScale / most);
      for (int k = 0; k < sharpness_; ++k) fill = (fill * fill) >> kScaleBits;
      const auto own = static_cast<int64_t>(static_cast<Wide>(hold[l]) * (kScale / 16) / longest);
      length_[l] = std::max<int64_t>(own, 1) * (1 + fill / 16);
    }
  }

  void Take(size_t chunk) {
    ChunkTrees& trees = trees_[chunk];
    trees.root = problem_.root[chunk];
    FindLengths();
    Grow(trees.root, /*outward=*/true, trees.down);
    if (problem_.reverse) {
      trees.up.resize(trees.down.size());
      for (NodeId rank : topology_.Ranks())
        if (rank != trees.root)
          trees.up[rank.index()] = (*problem_.reverse)[trees.down[rank.index()].index()];
    } else {
      Grow(trees.root, /*outward=*/false, trees.up);
    }
    AddLoad(chunk, 1);
  }

  void Grow(NodeId root, bool outward, std::vector<LinkId>& link_of_rank) {
    const auto n = static_cast<size_t>(topology_.num_ranks());
    link_of_rank.assign(n, LinkId{-1});
    std::vector<bool> is_in(n, false);
    // The least offer to each rank is the one that it will join by: larger ones stay out of `open`.
    constexpr int64_t kNoOffer = std::numeric_limits<int64_t>::max();
    least_.assign(n, {kNoOffer, 0, 0, LinkId{-1}, NodeId{-1}});
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    const auto reach = [&](NodeId rank, int64_t depth) {
      is_in[rank.index()] = true;
      const int64_t depth_key = depth * problem_.depth_weight / 16;
      const auto offer = [&](LinkId link, NodeId next) {
        if (is_in[next.index()]) return;
        const int64_t length = length_[link.index()];
        const Entry entry{length + depth_key, random_.Next(), depth + length, link, next};
        Entry& least = least_[next.index()];
        if (!(least > entry)) return;
        least = entry;
        open.push(entry);
      };
      if (outward) {
        for (LinkId link : topology_.OutLinks(rank)) offer(link, topology_.head(link));
      } else {
        for (LinkId link : topology_.InLinks(rank)) offer(link, topology_.tail(link));
      }
    };
    reach(root, 0);
    while (!open.empty()) {
      const Entry entry = open.top();
      open.pop();
      if (is_in[entry.rank.index()]) continue;
      link_of_rank[entry.rank.index()] = entry.link;
      reach(entry.rank, entry.depth);
    }
  }

  const PackingProblem& problem_;
  const Topology& topology_;
  int sharpness_ = kMinSharpness;
  std::vector<int64_t> load_, length_;
  Random random_;
  std::vector<ChunkTrees> trees_;
  std::vector<Entry> least_;  // by rank; of Grow()
};

}  // namespace

Result<std::vector<ChunkTrees>> PackTrees(const PackingProblem& problem) {
  return Packer(problem).Run();
}

}  // namespace tutti::ten

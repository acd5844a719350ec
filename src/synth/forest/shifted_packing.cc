#include "forest/shifted_packing.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tutti/base/index.h"

namespace tutti::forest {
namespace {

bool IsShift(const TreeNetwork& network, int32_t shift) {
  const int32_t n = network.num_ranks;
  for (int32_t rank = 0; rank < n; ++rank)
    if (network.trees_of[Index(rank)] != network.trees_of[Index((rank + shift) % n)]) return false;
  for (const auto& [ends, lane] : network.lanes) {
    const auto image = network.lanes.find({(ends.first + shift) % n, (ends.second + shift) % n});
    if (image == network.lanes.end() || image->second.trees() != lane.trees()) return false;
  }
  return true;
}

class ShiftedPacker {
 public:
  ShiftedPacker(const TreeNetwork& network, int32_t shift)
      : n_(network.num_ranks), shift_(shift), out_(Index(shift)) {
    // The lanes of the first `shift` ranks stand for their orbits.
    for (const auto& [ends, lane] : network.lanes)
      if (ends.first < shift)
        out_[Index(ends.first)].push_back({(ends.second - ends.first + n_) % n_, lane.trees()});
    for (std::vector<Orbit>& orbits : out_)
      std::sort(orbits.begin(), orbits.end(),
                [](const Orbit& a, const Orbit& b) { return a.turn < b.turn; });
  }

  std::optional<std::vector<PackedTree>> Run(const std::vector<int64_t>& trees_of) {
    std::vector<PackedTree> first;
    for (int32_t root = 0; root < shift_; ++root)
      for (int64_t left = trees_of[Index(root)]; left > 0;) {
        int64_t copies = left;
        std::optional<PackedTree> tree;
        while (copies > 0 && !(tree = Grow(root, copies))) copies /= 2;
        if (!tree) return std::nullopt;
        left -= copies;
        first.push_back(*std::move(tree));
      }
    std::vector<PackedTree> all;
    all.reserve(first.size() * Index(n_ / shift_));
    for (int32_t by = 0; by < n_; by += shift_)
      for (const PackedTree& tree : first) all.push_back(Shifted(tree, by));
    return all;
  }

 private:
  struct Orbit {
    int32_t turn;
    int64_t left;
  };

  struct Step {
    int64_t left;
    int32_t tail;
    Orbit* orbit;
  };

  std::optional<PackedTree> Grow(int32_t root, int64_t copies) {
    const std::vector<std::vector<Orbit>> before = out_;
    PackedTree tree{.root = NodeId{root}, .copies = copies, .branches = {}};
    std::vector<bool> in(Index(n_), false);
    std::vector<int32_t> level{root};
    size_t reached = 1;
    in[Index(root)] = true;
    while (!level.empty()) {
      // What is scarce is left to ranks that have nothing else.
      std::vector<Step> steps;
      for (const int32_t tail : level)
        for (Orbit& orbit : out_[Index(tail % shift_)])
          if (!in[Index((tail + orbit.turn) % n_)]) steps.push_back({orbit.left, tail, &orbit});
      std::stable_sort(steps.begin(), steps.end(),
                       [](const Step& a, const Step& b) { return a.left > b.left; });
      level.clear();
      for (const Step& step : steps) {
        const int32_t head = (step.tail + step.orbit->turn) % n_;
        if (in[Index(head)] || step.orbit->left < copies) continue;
        in[Index(head)] = true;
        step.orbit->left -= copies;
        tree.branches.push_back({step.tail, head});
        level.push_back(head);
        ++reached;
      }
    }
    if (reached == Index(n_)) return tree;
    out_ = before;
    return std::nullopt;
  }

  PackedTree Shifted(PackedTree tree, int32_t by) const {
    tree.root.value = (tree.root.value + by) % n_;
    for (TreeBranch& branch : tree.branches) {
      branch.tail = (branch.tail + by) % n_;
      branch.head = (branch.head + by) % n_;
    }
    return tree;
  }

  const int32_t n_, shift_;
  std::vector<std::vector<Orbit>> out_;
};

}  // namespace

std::optional<int32_t> SmallestShift(const TreeNetwork& network) {
  for (int32_t shift = 1; shift * 2 <= network.num_ranks; ++shift)
    if (network.num_ranks % shift == 0 && IsShift(network, shift)) return shift;
  return std::nullopt;
}

std::optional<std::vector<PackedTree>> PackShifted(const TreeNetwork& network, int32_t shift) {
  return ShiftedPacker(network, shift).Run(network.trees_of);
}

}  // namespace tutti::forest

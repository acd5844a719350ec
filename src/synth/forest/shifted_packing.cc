#include "forest/shifted_packing.h"

#include <algorithm>
#include <utility>

#include "tutti/base/index.h"

namespace tutti::forest {
namespace {

uint64_t Mixed(uint64_t a, uint64_t b) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  a = (a ^ b) * kOdd;
  return (a ^ (a >> 29)) * kOdd;
}

// By node: a rank's number after the shift, what hangs on a switch.
std::vector<uint64_t> ColoursOf(const Topology& topology, int32_t shift) {
  constexpr int kTiers = 6;
  std::vector<uint64_t> colours(Index(topology.num_nodes()), 0);
  for (NodeId rank : topology.Ranks())
    colours[rank.index()] =
        Mixed(1, static_cast<uint64_t>((rank.value + shift) % topology.num_ranks()));
  for (int tier = 0; tier < kTiers; ++tier) {
    const std::vector<uint64_t> before = colours;
    for (NodeId node : topology.Nodes()) {
      if (topology.is_rank(node)) continue;
      // A sum: links have no order.
      uint64_t sum = 0;
      const auto add = [&](LinkId link, NodeId other, uint64_t direction) {
        const auto bandwidth = static_cast<uint64_t>(topology.bandwidth(link));
        const auto alpha = static_cast<uint64_t>(topology.alpha_ps(link));
        sum += Mixed(Mixed(bandwidth, alpha), Mixed(before[other.index()], direction));
      };
      for (LinkId link : topology.OutLinks(node)) add(link, topology.head(link), 1);
      for (LinkId link : topology.InLinks(node)) add(link, topology.tail(link), 2);
      colours[node.index()] = Mixed(sum, 3);
    }
  }
  return colours;
}

uint64_t LinksOf(const Topology& topology, NodeId rank, const std::vector<uint64_t>& colours) {
  uint64_t sum = 0;
  for (LinkId link : topology.OutLinks(rank))
    sum += Mixed(Mixed(static_cast<uint64_t>(topology.bandwidth(link)),
                       static_cast<uint64_t>(topology.alpha_ps(link))),
                 colours[topology.head(link).index()]);
  return sum;
}

class ShiftedPacker {
 public:
  ShiftedPacker(const TreeNetwork& network, const RankShifts& shifts)
      : n_(network.num_ranks), shifts_(shifts), out_(Index(shifts.first())) {
    // The lanes of the first ranks stand for their orbits.
    for (const auto& [ends, lane] : network.lanes)
      if (ends.first < shifts.first())
        out_[Index(ends.first)].push_back(
            {(ends.second - ends.first + n_) % n_, ends.second, lane.trees()});
    for (std::vector<Orbit>& orbits : out_)
      std::sort(orbits.begin(), orbits.end(),
                [](const Orbit& a, const Orbit& b) { return a.turn < b.turn; });
  }

  std::optional<std::vector<PackedTree>> Run(const std::vector<int64_t>& trees_of) {
    std::vector<PackedTree> first;
    for (int32_t root = 0; root < shifts_.first(); ++root)
      for (int64_t left = trees_of[Index(root)]; left > 0;) {
        int64_t copies = left;
        std::optional<PackedTree> tree;
        while (copies > 0 && !(tree = Grow(root, copies))) copies /= 2;
        if (!tree) return std::nullopt;
        left -= copies;
        first.push_back(*std::move(tree));
      }
    return AllShifted(first, shifts_);
  }

 private:
  // `head` of the lane out of the first rank.
  struct Orbit {
    int32_t turn, head;
    int64_t left;
  };

  struct Step {
    int64_t left;
    int32_t tail, head;
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
        for (Orbit& orbit : out_[Index(shifts_.FirstOf(tail))]) {
          const int32_t head = shifts_.Image(shifts_.MemberTo(tail), orbit.head);
          if (!in[Index(head)]) steps.push_back({orbit.left, tail, head, &orbit});
        }
      std::stable_sort(steps.begin(), steps.end(),
                       [](const Step& a, const Step& b) { return a.left > b.left; });
      level.clear();
      for (const Step& step : steps) {
        if (in[Index(step.head)] || step.orbit->left < copies) continue;
        in[Index(step.head)] = true;
        step.orbit->left -= copies;
        tree.branches.push_back({step.tail, step.head});
        level.push_back(step.head);
        ++reached;
      }
    }
    if (reached == Index(n_)) return tree;
    out_ = before;
    return std::nullopt;
  }

  const int32_t n_;
  const RankShifts& shifts_;
  std::vector<std::vector<Orbit>> out_;
};

}  // namespace

bool SeemsShifted(const Topology& topology) {
  const int32_t n = topology.num_ranks();
  const std::vector<uint64_t> plain = ColoursOf(topology, 0);
  const auto shifts = [&](int32_t by) {
    const std::vector<uint64_t> shifted = ColoursOf(topology, by);
    for (NodeId rank : topology.Ranks())
      if (LinksOf(topology, rank, shifted) !=
          LinksOf(topology, NodeId{(rank.value + by) % n}, plain))
        return false;
    return true;
  };
  for (int32_t by = 1; by * 2 <= n; ++by)
    if (n % by == 0 && shifts(by)) return true;
  return false;
}

std::vector<PackedTree> AllShifted(const std::vector<PackedTree>& first, const RankShifts& shifts) {
  std::vector<PackedTree> all;
  all.reserve(first.size() * Index(shifts.members()));
  for (int32_t member = 0; member < shifts.members(); ++member)
    for (PackedTree tree : first) {
      tree.root.value = shifts.Image(member, tree.root.value);
      for (TreeBranch& branch : tree.branches) {
        branch.tail = shifts.Image(member, branch.tail);
        branch.head = shifts.Image(member, branch.head);
      }
      all.push_back(std::move(tree));
    }
  return all;
}

std::optional<std::vector<PackedTree>> PackShifted(const TreeNetwork& network,
                                                   const RankShifts& shifts) {
  return ShiftedPacker(network, shifts).Run(network.trees_of);
}

}  // namespace tutti::forest

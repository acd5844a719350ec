#include "classic/double_tree.h"

#include <bit>

namespace tutti::classic {
namespace {

struct LabelEdge {
  int32_t parent, child;
};

// The in-order tree over labels 1 .. n: label i with h trailing zeros has the labels within 2^h of
// it below it. Top down, from the largest power of two.
std::vector<LabelEdge> InOrderTree(int32_t n) {
  std::vector<LabelEdge> edges;
  std::vector<int32_t> inner{static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(n)))};
  for (size_t next = 0; next < inner.size(); ++next) {
    const int32_t label = inner[next];
    const auto reach =
        static_cast<int32_t>(uint32_t{1} << std::countr_zero(static_cast<uint32_t>(label)));
    if (reach == 1) continue;
    int32_t right = reach / 2;
    while (right > 0 && label + right > n) right /= 2;
    for (int32_t child : {label - reach / 2, label + right}) {
      if (child == label) continue;
      edges.push_back({label, child});
      inner.push_back(child);
    }
  }
  return edges;
}

}  // namespace

std::array<std::vector<TreeEdge>, 2> DoubleTree(int32_t num_ranks, NodeId root) {
  std::array<std::vector<TreeEdge>, 2> trees;
  const int32_t n = num_ranks - 1;
  if (n == 0) return trees;
  const auto rank_of = [num_ranks, root](int32_t label) {
    return NodeId{(root.value + label) % num_ranks};
  };
  const auto second = [n](int32_t label) { return n % 2 == 0 ? n + 1 - label : label % n + 1; };
  const auto top = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(n)));
  trees[0].push_back({root, rank_of(top)});
  trees[1].push_back({root, rank_of(second(top))});
  for (const LabelEdge& edge : InOrderTree(n)) {
    trees[0].push_back({rank_of(edge.parent), rank_of(edge.child)});
    trees[1].push_back({rank_of(second(edge.parent)), rank_of(second(edge.child))});
  }
  return trees;
}

}  // namespace tutti::classic

#include "baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include "direct.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::direct {
namespace {

// The rank above this one in the first tree; rank 0 is its root.
std::optional<int32_t> ParentOf(int32_t rank, int32_t ranks) {
  if (rank == 0) return std::nullopt;
  const auto bit =
      static_cast<int32_t>(uint32_t{1} << std::countr_zero(static_cast<uint32_t>(rank)));
  const int32_t above = (rank ^ bit) | (bit << 1);
  return above < ranks ? above : rank ^ bit;
}

// The fewest us of (steps + k - 1) (alpha + 2M/(Bk)) over k >= 1, which falls and then rises.
TreeTime Pipelined(int32_t steps) {
  TreeTime best;
  for (int64_t pieces = 1;; ++pieces) {
    const Rational us =
        Rational(steps + pieces - 1) * (AlphaUs() + Rational(2, pieces) * MiBOverBandwidthUs());
    if (pieces > 1 && us >= best.us) return best;
    best = {us, pieces};
  }
}

}  // namespace

int32_t ShiftedRingStride(int32_t ranks) {
  int32_t stride = 2;
  while (std::gcd(stride, ranks) != 1) ++stride;
  return stride;
}
std::string ShiftedRing(int32_t ranks) {
  return fmt::format("circulant({},1,{})", ranks, ShiftedRingStride(ranks));
}

Rational ShiftedRingAllReduceUs(int32_t ranks) { return AllReduceUs(ranks - 1, BestTb(ranks)); }

Result<Topology> DoubleBinaryTree(int32_t ranks) {
  Topology::Builder builder(ranks);
  const LinkSpec spec;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const std::optional<int32_t> parent = ParentOf(rank, ranks);
    if (!parent) continue;
    builder.AddDuplex(NodeId{rank}, NodeId{*parent}, spec);
    const auto second = [ranks](int32_t r) {
      return NodeId{ranks % 2 == 0 ? ranks - 1 - r : (r + 1) % ranks};
    };
    builder.AddDuplex(second(rank), second(*parent), spec);
  }
  builder.SetName(fmt::format("double binary tree of {}", ranks));
  return std::move(builder).Build();
}

int32_t DoubleBinaryTreeHeight(int32_t ranks) {
  int32_t height = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    int32_t links = 0;
    for (std::optional<int32_t> at = ParentOf(rank, ranks); at; at = ParentOf(*at, ranks)) ++links;
    height = std::max(height, links);
  }
  return height;
}

TreeTime TwoTreeAllReduce(int32_t ranks) {
  TreeTime time = TreesInOnePass(ranks);
  time.us *= Rational(2);
  return time;
}
TreeTime TreesInOnePass(int32_t ranks) { return Pipelined(2 * DoubleBinaryTreeHeight(ranks)); }
Rational TreesInOnePieceUs(int32_t ranks) {
  return Rational(int64_t{2} * DoubleBinaryTreeHeight(ranks)) *
         (AlphaUs() + Rational(2) * MiBOverBandwidthUs());
}

Rational TraditionalTorusAllReduceUs(int32_t side) {
  return AllReduceUs(2 * (side - 1), BestTb(int64_t{side} * side));
}

}  // namespace tutti::direct

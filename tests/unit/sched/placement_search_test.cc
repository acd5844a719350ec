#include "tutti/sched/placement_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/random.h"

namespace tutti {
namespace {

std::vector<NodeId> InOrder(int32_t n) {
  std::vector<NodeId> ranks;
  for (int32_t rank = 0; rank < n; ++rank) ranks.push_back(NodeId{rank});
  return ranks;
}

// Ranks i and j of the job exchange `weight[i][j]` over as many hops as their places on a line differ.
struct OnALine {
  std::vector<std::vector<int32_t>> weight;

  explicit OnALine(int32_t n, uint64_t seed) {
    Random random(seed);
    weight.assign(static_cast<size_t>(n), std::vector<int32_t>(static_cast<size_t>(n), 0));
    for (auto& row : weight)
      for (int32_t& value : row) value = static_cast<int32_t>(random.Below(10));
  }
  Rational Of(std::span<const NodeId> ranks) const {
    int64_t sum = 0;
    for (size_t i = 0; i < weight.size(); ++i)
      for (size_t j = 0; j < weight.size(); ++j)
        sum += weight[i][j] * std::abs(ranks[i].value - ranks[j].value);
    return Rational(sum);
  }
};

// By hand: jobs ranks 0 - 1 exchange much, on places 0 and 3 of four. The least is any two neighbours.
TEST(PlacementSearchTest, TheTwoThatExchangeLieBesideEachOther) {
  int64_t asked = 0;
  const auto found = FindPlacement({{NodeId{0}, NodeId{3}, NodeId{1}, NodeId{2}}}, 2,
                                   [&](std::span<const NodeId> ranks) -> Result<Rational> {
                                     ++asked;
                                     return Rational(std::abs(ranks[0].value - ranks[1].value));
                                   },
                                   {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->first_seconds, Rational(3));
  EXPECT_EQ(found->seconds, Rational(1));
  EXPECT_TRUE(found->is_least);
  EXPECT_EQ(found->tries, 1 + 4 * 3);
  EXPECT_EQ(asked, found->tries);
  EXPECT_EQ(found->ranks, InOrder(4));
}

TEST(PlacementSearchTest, FewPlacementsAreAllTried) {
  constexpr int32_t kRanks = 6;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    for (const int32_t used : {2, 4, 6}) {
      const OnALine line(used, seed);
      const auto price = [&](std::span<const NodeId> ranks) -> Result<Rational> {
        return line.Of(ranks);
      };
      const auto found = FindPlacement({InOrder(kRanks)}, used, price, {});
      ASSERT_TRUE(found);
      std::vector<NodeId> order = InOrder(kRanks);
      Rational least = line.Of(order);
      do least = std::min(least, line.Of(order));
      while (std::next_permutation(order.begin(), order.end()));
      EXPECT_EQ(found->seconds, least);
      EXPECT_EQ(line.Of(found->ranks), least);
      EXPECT_TRUE(found->is_least);
    }
  }
}

TEST(PlacementSearchTest, ManyAreSearchedFromTheBestStart) {
  constexpr int32_t kRanks = 16;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const int32_t used = seed % 2 == 0 ? kRanks : 11;
    const OnALine line(used, seed);
    const auto price = [&](std::span<const NodeId> ranks) -> Result<Rational> {
      return line.Of(ranks);
    };
    std::vector<NodeId> backward = InOrder(kRanks);
    std::reverse(backward.begin(), backward.end());
    const std::vector<std::vector<NodeId>> starts = {InOrder(kRanks), backward};
    const PlacementSearch search{.seed = seed, .max_tries = 1500};
    const auto found = FindPlacement(starts, used, price, search);
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->is_least);
    EXPECT_EQ(found->tries, search.max_tries);
    EXPECT_LE(found->seconds, std::min(line.Of(starts[0]), line.Of(starts[1])));
    EXPECT_EQ(found->first_seconds, line.Of(starts[0]));
    EXPECT_EQ(found->seconds, line.Of(found->ranks));
    std::vector<NodeId> sorted = found->ranks;
    EXPECT_TRUE(std::is_sorted(sorted.begin() + used, sorted.end()));
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, InOrder(kRanks));
    const auto again = FindPlacement(starts, used, price, search);
    EXPECT_EQ(again->ranks, found->ranks);
  }
}

// Job ranks i and i + 1 exchange: in order on the line is the least, and is found from a mixed start.
TEST(PlacementSearchTest, APathIsLaidAlongTheLine) {
  constexpr int32_t kRanks = 10;
  const auto price = [](std::span<const NodeId> ranks) -> Result<Rational> {
    int64_t sum = 0;
    for (size_t i = 1; i < ranks.size(); ++i) sum += std::abs(ranks[i].value - ranks[i - 1].value);
    return Rational(sum);
  };
  std::vector<NodeId> mixed = InOrder(kRanks);
  Random random(3);
  for (size_t i = mixed.size(); i > 1; --i) std::swap(mixed[i - 1], mixed[random.Below(i)]);
  const auto found = FindPlacement({mixed}, kRanks, price, {.seed = 1, .max_tries = 20'000});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->seconds, Rational(kRanks - 1));
}

// Prices that are one double: 2^60 + 1 and 2^60.
TEST(PlacementSearchTest, TheLesserOfTwoThatRoundAlike) {
  const auto price = [](std::span<const NodeId> ranks) -> Result<Rational> {
    return Rational((int64_t{1} << 60) + (ranks[0].value == 1 ? 0 : 1));
  };
  const auto found = FindPlacement({InOrder(3)}, 1, price, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ranks[0], NodeId{1});
}

TEST(PlacementSearchTest, WhatHasNoPriceIsPassedOver) {
  const auto price = [](std::span<const NodeId> ranks) -> Result<Rational> {
    if (ranks[0].value == 0) return MakeError(ErrorCode::kInfeasible, "it falls apart");
    return Rational(ranks[0].value);
  };
  const auto from_none = FindPlacement({InOrder(3)}, 1, price, {});
  ASSERT_TRUE(from_none) << from_none.error().message;
  EXPECT_EQ(from_none->seconds, Rational(1));
  EXPECT_EQ(from_none->first_seconds, std::nullopt);
  EXPECT_TRUE(from_none->is_least);
  const auto found = FindPlacement({{NodeId{2}, NodeId{0}, NodeId{1}}}, 1, price, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->seconds, Rational(1));
  EXPECT_EQ(found->first_seconds, Rational(2));
}

// Nine in twelve, far more orders than are tried one by one: the used ones must hold rank 11, which
// no start does.
TEST(PlacementSearchTest, WhereNoStartHasAPriceOthersAreDrawn) {
  constexpr int32_t kRanks = 12, kUsed = 9;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto price = [](std::span<const NodeId> ranks) -> Result<Rational> {
      const auto used = ranks.first(kUsed);
      const auto last = std::find(used.begin(), used.end(), NodeId{kRanks - 1});
      if (last == used.end()) return MakeError(ErrorCode::kInfeasible, "it falls apart");
      return Rational(1 + (last - used.begin()));
    };
    const auto found =
        FindPlacement({InOrder(kRanks)}, kUsed, price, {.seed = seed, .max_tries = 500});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->first_seconds, std::nullopt);
    EXPECT_EQ(found->ranks[0], NodeId{kRanks - 1});
  }
}

TEST(PlacementSearchTest, WhereNoneHasAPriceTheFirstSaysWhy) {
  for (const int32_t ranks : {3, 12})
    for (const ErrorCode code : {ErrorCode::kInfeasible, ErrorCode::kInvalidArgument}) {
      int64_t asked = 0;
      const auto price = [&](std::span<const NodeId> order) -> Result<Rational> {
        ++asked;
        return MakeError(code, "first of them " + std::to_string(order[0].value));
      };
      const auto refused = FindPlacement({InOrder(ranks)}, 3, price, {.max_tries = 50});
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, code);
      EXPECT_EQ(refused.error().message, "first of them 0");
      // What another placement would not mend is not asked again.
      EXPECT_EQ(asked == 1, code == ErrorCode::kInvalidArgument);
    }
}

}  // namespace
}  // namespace tutti

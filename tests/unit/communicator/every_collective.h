// Every collective of a communicator, checked by its definition.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/status.h"
#include "tutti/communicator.h"

namespace tutti {

// What rank `rank` contributes at position `at`: small, so that sums are exact.
inline int64_t Value(int32_t rank, int64_t at) { return (rank + 1) * (at % 7 + 1); }

inline std::vector<int64_t> Block(int32_t rank, int64_t first, int64_t count) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(Value(rank, first + i));
  return values;
}

inline int64_t SumAt(int32_t num_ranks, int64_t at) {
  int64_t sum = 0;
  for (int32_t rank = 0; rank < num_ranks; ++rank) sum += Value(rank, at);
  return sum;
}

// Every collective by its definition, in place and not, at the counts where slots are empty, uneven
// or large, several times over the same connections.
inline void CheckAll(Communicator& ranks, int64_t count) {
  const int32_t n = ranks.num_ranks(), me = ranks.rank();
  const auto type = DataType::kInt64;
  const int64_t all = count * n;
  const auto block_of = [count](const std::vector<int64_t>& whole, int32_t rank) {
    return std::vector<int64_t>(whole.begin() + rank * count, whole.begin() + (rank + 1) * count);
  };
  const auto gathered = [&] {
    std::vector<int64_t> whole;
    for (int32_t rank = 0; rank < n; ++rank) {
      const std::vector<int64_t> block = Block(rank, 0, count);
      whole.insert(whole.end(), block.begin(), block.end());
    }
    return whole;
  }();
  std::vector<int64_t> sums;
  for (int64_t i = 0; i < all; ++i) sums.push_back(SumAt(n, i));
  const std::vector<int64_t> first_sums(sums.begin(), sums.begin() + count);

  std::vector<int64_t> out(static_cast<size_t>(count), -1);
  const std::vector<int64_t> mine = Block(me, 0, count), wide = Block(me, 0, all);
  ASSERT_TRUE(test_support::Succeeded(
      ranks.AllReduce(mine.data(), out.data(), count, type, ReduceOp::kSum)));
  EXPECT_EQ(out, first_sums);
  out = mine;
  ASSERT_TRUE(test_support::Succeeded(
      ranks.AllReduce(out.data(), out.data(), count, type, ReduceOp::kSum)));
  EXPECT_EQ(out, first_sums);

  std::vector<int64_t> whole(static_cast<size_t>(all), -1);
  ASSERT_TRUE(test_support::Succeeded(ranks.AllGather(mine.data(), whole.data(), count, type)));
  EXPECT_EQ(whole, gathered);
  std::fill(whole.begin(), whole.end(), -1);
  std::copy(mine.begin(), mine.end(), whole.begin() + me * count);
  ASSERT_TRUE(test_support::Succeeded(
      ranks.AllGather(whole.data() + me * count, whole.data(), count, type)));
  EXPECT_EQ(whole, gathered);

  out.assign(static_cast<size_t>(count), -1);
  ASSERT_TRUE(test_support::Succeeded(
      ranks.ReduceScatter(wide.data(), out.data(), count, type, ReduceOp::kSum)));
  EXPECT_EQ(out, block_of(sums, me));
  whole = wide;
  ASSERT_TRUE(test_support::Succeeded(
      ranks.ReduceScatter(whole.data(), whole.data() + me * count, count, type, ReduceOp::kSum)));
  EXPECT_EQ(block_of(whole, me), block_of(sums, me));

  for (const int32_t root : {0, n - 1}) {
    out = me == root ? Block(root, 5, count) : std::vector<int64_t>(static_cast<size_t>(count), -1);
    ASSERT_TRUE(
        test_support::Succeeded(ranks.Broadcast(out.data(), out.data(), count, type, root)));
    EXPECT_EQ(out, Block(root, 5, count));
    out.assign(static_cast<size_t>(count), -1);
    ASSERT_TRUE(test_support::Succeeded(ranks.Reduce(mine.data(), me == root ? out.data() : nullptr,
                                                     count, type, ReduceOp::kSum, root)));
    if (me == root) {
      EXPECT_EQ(out, first_sums);
    }
    whole.assign(static_cast<size_t>(all), -1);
    ASSERT_TRUE(
        test_support::Succeeded(ranks.Gather(mine.data(), whole.data(), count, type, root)));
    if (me == root) {
      EXPECT_EQ(whole, gathered);
    }
    out.assign(static_cast<size_t>(count), -1);
    ASSERT_TRUE(test_support::Succeeded(
        ranks.Scatter(me == root ? gathered.data() : nullptr, out.data(), count, type, root)));
    EXPECT_EQ(out, mine);
  }

  std::vector<int64_t> exchanged(static_cast<size_t>(all), -1), wanted;
  ASSERT_TRUE(test_support::Succeeded(ranks.AllToAll(wide.data(), exchanged.data(), count, type)));
  for (int32_t from = 0; from < n; ++from) {
    const std::vector<int64_t> block = Block(from, me * count, count);
    wanted.insert(wanted.end(), block.begin(), block.end());
  }
  EXPECT_EQ(exchanged, wanted);
}

}  // namespace tutti

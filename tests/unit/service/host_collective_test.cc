// Small collectives between buffers of one process: each kind beside what it means, in place and not; calls that differ.
#include "host_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/status.h"

namespace tutti::service {
namespace {

using testing::ElementsAre;
using Ints = std::vector<int32_t>;

struct RankBuffers {
  Ints input, output;
};

CollectiveCall CallOf(CollectiveKind kind, RankBuffers& buffers, int64_t count,
                      ReduceOp op = ReduceOp::kSum, int32_t root = 0) {
  return {.kind = kind,
          .input = buffers.input.data(),
          .output = buffers.output.data(),
          .count = count,
          .type = DataType::kInt32,
          .op = op,
          .root = root};
}

// Element i of rank r's input is 100 r + i. Ranks come in that order, from the last.
std::vector<RankBuffers> RunAll(CollectiveKind kind, int64_t count, size_t input, size_t output,
                                ReduceOp op = ReduceOp::kSum, int32_t root = 0) {
  constexpr int32_t kRanks = 3;
  std::vector<RankBuffers> ranks(kRanks);
  HostCollective collective(kRanks);
  for (int32_t rank = kRanks - 1; rank >= 0; --rank) {
    RankBuffers& buffers = ranks[static_cast<size_t>(rank)];
    for (size_t i = 0; i < input; ++i)
      buffers.input.push_back(100 * rank + static_cast<int32_t>(i));
    buffers.output.resize(output, -1);
    EXPECT_FALSE(collective.is_done());
    collective.Enter(rank, CallOf(kind, buffers, count, op, root));
  }
  EXPECT_TRUE(collective.is_done());
  return ranks;
}

TEST(HostCollectiveTest, EachKindDoesWhatItSays) {
  for (const RankBuffers& rank : RunAll(CollectiveKind::kAllReduce, 2, 2, 2))
    EXPECT_THAT(rank.output, ElementsAre(300, 303));
  for (const RankBuffers& rank : RunAll(CollectiveKind::kAllReduce, 2, 2, 2, ReduceOp::kAvg))
    EXPECT_THAT(rank.output, ElementsAre(100, 101));
  const auto scattered = RunAll(CollectiveKind::kReduceScatter, 1, 3, 1, ReduceOp::kMax);
  for (size_t rank = 0; rank < 3; ++rank)
    EXPECT_THAT(scattered[rank].output, ElementsAre(200 + static_cast<int32_t>(rank)));
  for (const RankBuffers& rank : RunAll(CollectiveKind::kAllGather, 2, 2, 6))
    EXPECT_THAT(rank.output, ElementsAre(0, 1, 100, 101, 200, 201));
  for (const RankBuffers& rank : RunAll(CollectiveKind::kBroadcast, 2, 2, 2, ReduceOp::kSum, 1))
    EXPECT_THAT(rank.output, ElementsAre(100, 101));
  const auto reduced = RunAll(CollectiveKind::kReduce, 2, 2, 2, ReduceOp::kSum, 2);
  EXPECT_THAT(reduced[2].output, ElementsAre(300, 303));
  EXPECT_THAT(reduced[0].output, ElementsAre(-1, -1));
  const auto gathered = RunAll(CollectiveKind::kGather, 1, 1, 3, ReduceOp::kSum, 1);
  EXPECT_THAT(gathered[1].output, ElementsAre(0, 100, 200));
  EXPECT_THAT(gathered[0].output, ElementsAre(-1, -1, -1));
  const auto spread = RunAll(CollectiveKind::kScatter, 1, 3, 1, ReduceOp::kSum, 2);
  for (size_t rank = 0; rank < 3; ++rank)
    EXPECT_THAT(spread[rank].output, ElementsAre(200 + static_cast<int32_t>(rank)));
  const auto exchanged = RunAll(CollectiveKind::kAllToAll, 1, 3, 3);
  EXPECT_THAT(exchanged[1].output, ElementsAre(1, 101, 201));
}

TEST(HostCollectiveTest, InPlaceNothingIsOverwrittenBeforeItIsRead) {
  std::vector<RankBuffers> ranks(2);
  const auto run = [&](CollectiveKind kind, int64_t count, auto place) {
    HostCollective collective(2);
    for (int32_t rank = 0; rank < 2; ++rank) {
      RankBuffers& buffers = ranks[static_cast<size_t>(rank)];
      buffers.output = {10 * rank, 10 * rank + 1};
      CollectiveCall call = CallOf(kind, buffers, count);
      place(call, buffers, rank);
      collective.Enter(rank, call);
    }
    ASSERT_TRUE(collective.is_done());
  };
  run(CollectiveKind::kAllReduce, 2, [](CollectiveCall& call, RankBuffers& buffers, int32_t) {
    call.input = buffers.output.data();
  });
  for (const RankBuffers& rank : ranks) EXPECT_THAT(rank.output, ElementsAre(10, 12));
  run(CollectiveKind::kReduceScatter, 1,
      [](CollectiveCall& call, RankBuffers& buffers, int32_t rank) {
        call.input = buffers.output.data();
        call.output = buffers.output.data() + rank;
      });
  EXPECT_EQ(ranks[0].output[0], 10);
  EXPECT_EQ(ranks[1].output[1], 12);
  run(CollectiveKind::kAllGather, 1, [](CollectiveCall& call, RankBuffers& buffers, int32_t rank) {
    call.input = buffers.output.data() + rank;
  });
  for (const RankBuffers& rank : ranks) EXPECT_THAT(rank.output, ElementsAre(0, 11));
}

TEST(HostCollectiveTest, NoElementsAndNoBuffers) {
  HostCollective collective(2);
  for (int32_t rank = 0; rank < 2; ++rank)
    collective.Enter(rank, {.kind = CollectiveKind::kAllReduce, .count = 0});
  EXPECT_TRUE(collective.is_done());
}

TEST(HostCollectiveTest, CallsThatDifferAreNamedAndNothingIsWritten) {
  std::vector<RankBuffers> ranks(2, {{1, 2}, {-1, -1}});
  HostCollective collective(2);
  collective.Enter(1, CallOf(CollectiveKind::kAllReduce, ranks[1], 2));
  collective.Enter(0, CallOf(CollectiveKind::kAllReduce, ranks[0], 1));
  EXPECT_FALSE(collective.is_done());
  EXPECT_EQ(
      collective.health().error().message,
      "rank 1 runs all-reduce of 2 int32 (sum), rank 0 all-reduce of 1 int32 (sum): the ranks "
      "do not run the same");
  for (const RankBuffers& rank : ranks) EXPECT_THAT(rank.output, ElementsAre(-1, -1));
}

TEST(HostCollectiveTest, LargeOnesDoNotFit) {
  const auto fits = [](CollectiveKind kind, int64_t count) {
    return HostCollective::Fits({.kind = kind, .count = count, .type = DataType::kFloat32}, 4);
  };
  EXPECT_TRUE(fits(CollectiveKind::kAllReduce, 4096));
  EXPECT_FALSE(fits(CollectiveKind::kAllReduce, 4097));
  EXPECT_TRUE(fits(CollectiveKind::kAllGather, 4096));
  EXPECT_TRUE(fits(CollectiveKind::kAllToAll, 1024));
  EXPECT_FALSE(fits(CollectiveKind::kAllToAll, 1025));
  EXPECT_FALSE(fits(CollectiveKind::kBroadcast, INT64_MAX / 2));
}

}  // namespace
}  // namespace tutti::service

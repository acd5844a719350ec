// Schedules through switches: what a switch forwards becomes a message between ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "schedules.h"
#include "tutti/lower/lowering.h"
#include "tutti/lower/msccl_xml.h"

namespace tutti {
namespace {

using namespace testing_lower;  // NOLINT: test helpers
using testing::HasSubstr;

// Ranks 0 .. n - 1 on switches n .. n + switches - 1, which form a path; rank r is on switch r % k.
Topology Star(int32_t ranks, int32_t switches = 1) {
  Topology::Builder builder(ranks, switches);
  for (int32_t r = 0; r < ranks; ++r)
    builder.AddDuplex(NodeId{r}, NodeId{ranks + r % switches}, {});
  for (int32_t s = 0; s + 1 < switches; ++s)
    builder.AddDuplex(NodeId{ranks + s}, NodeId{ranks + s + 1}, {});
  return MustBuild(std::move(builder));
}

Plan MustLowerSwitched(const Topology& topology, const Schedule& schedule) {
  Result<Plan> plan = Lower(topology, schedule);
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  for (const bool in_place : {false, true})
    for (const int32_t depth : {0, 2}) {
      if (in_place && schedule.collective.kind() == CollectiveKind::kAllToAll) continue;
      const std::vector<PlanFault> faults =
          CheckPlan(*plan, {.fifo_depth = depth, .in_place = in_place});
      EXPECT_TRUE(faults.empty()) << faults[0].message;
    }
  return *std::move(plan);
}

// The ways of a shard of an all-gather through the star's switch, in two steps.
Schedule GatherThrough(const Topology& star) {
  const int32_t n = star.num_ranks();
  Schedule schedule = Empty(star, MustMake(CollectiveKind::kAllGather, n));
  for (int32_t r = 0; r < n; ++r) Add(schedule, 0, r, LinkOf(star, r, n));
  for (int32_t r = 0; r < n; ++r)
    for (int32_t to = 0; to < n; ++to)
      if (to != r) Add(schedule, 1, r, LinkOf(star, n, to));
  return schedule;
}

TEST(LowerSwitches, TwoHopsAreOneMessage) {
  const Topology star = Star(2);
  EXPECT_EQ(PlanToText(MustLowerSwitched(star, GatherThrough(star))),
            "plan all-gather ranks=2 units_per_shard=1 channels=1 algorithm=by-hand\n"
            "rank 0 input=1 output=2 scratch=0\n"
            "  stream 0 send=1 recv=-1 channel=0\n"
            "    0: step 0 send input[0, 1) to 1\n"
            "  stream 1 send=-1 recv=1 channel=0\n"
            "    0: step 0 recv output[1, 2) from 1\n"
            "  stream 2 send=-1 recv=-1 channel=0\n"
            "    0: step 1 copy output[0, 1) = input[0, 1)\n"
            "rank 1 input=1 output=2 scratch=0\n"
            "  stream 0 send=0 recv=-1 channel=0\n"
            "    0: step 0 send input[0, 1) to 0\n"
            "  stream 1 send=-1 recv=0 channel=0\n"
            "    0: step 0 recv output[0, 1) from 0\n"
            "  stream 2 send=-1 recv=-1 channel=0\n"
            "    0: step 1 copy output[1, 2) = input[0, 1)\n");
}

TEST(LowerSwitches, WhatASwitchCopiesIsAMessageToEach) {
  const Topology star = Star(4);
  const Plan plan = MustLowerSwitched(star, GatherThrough(star));
  for (const RankPlan& rank : plan.ranks) {
    int sends = 0;
    for (const Stream& stream : rank.streams)
      sends += stream.send_peer >= 0 ? static_cast<int>(stream.instructions.size()) : 0;
    EXPECT_EQ(sends, 3);
  }
  const Result<std::string> xml = ToMscclXml(star, GatherThrough(star), {});
  ASSERT_TRUE(xml.has_value()) << xml.error().message;
  EXPECT_TRUE(CheckMscclXml(*xml, MscclDialect::kExecutorNccl)->empty());
}

// Rank 0 sends a broadcast of four units in two halves, the switch passes them on as 1 and 3.
TEST(LowerSwitches, PartsAreCutWhereTheyCameFrom) {
  const Topology star = Star(3);
  Schedule schedule = Empty(star, MustMake(CollectiveKind::kBroadcast, 3), 4);
  const LinkId in = LinkOf(star, 0, 3);
  schedule.num_steps = 4;
  schedule.transfers = {{ShardId{0}, in, 0, 2, 0}, {ShardId{0}, in, 2, 4, 1}};
  for (const int32_t to : {1, 2}) {
    const LinkId out = LinkOf(star, 3, to);
    schedule.transfers.push_back({ShardId{0}, out, 0, 1, 2});
    schedule.transfers.push_back({ShardId{0}, out, 1, 4, 2});
  }
  MustLowerSwitched(star, schedule);
}

// The sum that leaves rank 1 for rank 0 is on its way through three switches while rank 1 takes in
// what rank 2 has: it must not be in the message, for rank 2 sends it to rank 0 itself.
TEST(LowerSwitches, WhatIsOnItsWayIsWhatLeft) {
  const Topology chain = Star(3, 3);  // rank r on switch 3 + r; switches 3 - 4 - 5
  Schedule schedule = Empty(chain, MustMake(CollectiveKind::kReduce, 3));
  const auto hop = [&](int32_t step, int32_t from, int32_t to, TransferOp op = TransferOp::kCopy) {
    Add(schedule, step, 0, LinkOf(chain, from, to), op);
  };
  hop(0, 1, 4);
  hop(0, 2, 5);
  hop(1, 4, 3);
  hop(1, 5, 4);
  hop(2, 4, 1, TransferOp::kReduce);  // rank 1 now holds 1 + 2
  hop(3, 3, 0, TransferOp::kReduce);  // and what arrives at rank 0 is 1 alone
  hop(3, 4, 3);                       // which 2 follows
  hop(4, 3, 0, TransferOp::kReduce);
  MustLowerSwitched(chain, schedule);
}

TEST(LowerSwitches, TimedSchedulesTooWhereWhatArrivesIsForwardedAtOnce) {
  const Topology star = Star(2);
  Schedule schedule = Empty(star, MustMake(CollectiveKind::kAllGather, 2));
  schedule.kind = ScheduleKind::kTimed;
  schedule.size_bytes = 2000;
  schedule.transfers = {{ShardId{0}, LinkOf(star, 0, 2), 0, 1, 0},
                        {ShardId{1}, LinkOf(star, 1, 2), 0, 1, 0},
                        {ShardId{0}, LinkOf(star, 2, 1), 0, 1, 0},
                        {ShardId{1}, LinkOf(star, 2, 0), 0, 1, 0}};
  const int64_t hop_ps = 500'000 + 20'000;  // 1000 bytes at 50 GB/s
  schedule.start_ps = {0, 0, hop_ps, hop_ps};
  EXPECT_EQ(MustLowerSwitched(star, schedule).ranks[0].streams.size(), 3u);
  schedule.start_ps = {0, 0, hop_ps - 1, hop_ps};
  const Result<Plan> early = Lower(star, schedule);
  ASSERT_FALSE(early.has_value());
  EXPECT_THAT(early.error().message, HasSubstr("switch 2 sends unit 0 of shard 0 over link"));
}

TEST(LowerSwitches, NamesTheFault) {
  const Topology star = Star(3);
  struct Row {
    std::function<void(Schedule&)> spoil;
    const char* message;
  };
  const std::vector<Row> rows{{[](Schedule& s) { s.transfers.erase(s.transfers.begin() + 1); },
                               "step 1: switch 3 sends unit 0 of shard 1 over link"},
                              {[](Schedule& s) { s.transfers[0].op = TransferOp::kReduce; },
                               "step 0: switch 3 cannot reduce shard 0"},
                              {[](Schedule& s) { s.transfers.pop_back(); },
                               "rank 1 never receives units [0, 1) of shard 2"}};
  for (const Row& row : rows) {
    Schedule schedule = GatherThrough(star);
    row.spoil(schedule);
    const Result<Plan> plan = Lower(star, schedule);
    ASSERT_FALSE(plan.has_value()) << row.message;
    EXPECT_EQ(plan.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(plan.error().message, HasSubstr(row.message));
  }
}

// Every chunk's end cuts every rank's copy of its shard: told from the counts, before any of it is
// there.
TEST(LowerRejects, PlansBeyondMemoryAreRefusedFromCounts) {
  constexpr int32_t kRanks = 2048;
  const Topology ring = UniRing(kRanks);
  Schedule schedule = Empty(ring, MustMake(CollectiveKind::kAllGather, kRanks), kRanks);
  schedule.num_steps = 1;
  for (int32_t shard = 0; shard < kRanks; ++shard)
    for (int32_t begin = 1; begin < kRanks; ++begin)
      schedule.transfers.push_back({ShardId{shard}, LinkId{begin}, begin, kRanks, 0});
  const Result<Plan> plan = Lower(ring, schedule);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(plan.error().message, HasSubstr("a plan of 4192256 messages"));
}

}  // namespace
}  // namespace tutti

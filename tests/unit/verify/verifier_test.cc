#include "tutti/verify/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/base/random.h"
#include "unit/verify/hand_schedules.h"

namespace tutti {
namespace {

using hand::FindLink;
using hand::MustMake;
using testing::HasSubstr;
using Kind = ViolationKind;

VerifyReport Judge(const Topology& topology, const Schedule& schedule) {
  return Verify(topology, schedule.collective, schedule);
}

void ExpectCorrect(const Topology& topology, const Schedule& schedule) {
  const VerifyReport report = Judge(topology, schedule);
  EXPECT_TRUE(report.verified()) << report.violations.front().message;
  EXPECT_EQ(report.deliveries, static_cast<int64_t>(schedule.transfers.size()));
}

// The first violation has this kind and message.
void ExpectFault(const Topology& topology, const Schedule& schedule, Kind kind,
                 const std::string& message) {
  const VerifyReport report = Judge(topology, schedule);
  ASSERT_FALSE(report.verified());
  EXPECT_EQ(Name(report.violations.front().kind), Name(kind));
  EXPECT_EQ(report.violations.front().message, message);
}

// --- Correct schedules -------------------------------------------------------------------------

TEST(VerifierTest, AcceptsHandMadeSchedules) {
  for (int32_t n = 2; n <= 9; ++n) {
    SCOPED_TRACE(n);
    const Topology uniring = hand::Ring(n, false);
    ExpectCorrect(uniring, hand::RingAllGather(uniring, false));
    ExpectCorrect(uniring, hand::RingReduceScatter(uniring));
    ExpectCorrect(uniring, hand::RingAllReduce(uniring));
    const Topology complete = hand::Complete(n);
    ExpectCorrect(complete, hand::BinomialBroadcast(complete));
    ExpectCorrect(complete, hand::RelayedAllToAll(complete));
    if (n == 2) continue;  // a cable has no two ways round
    const Topology ring = hand::Ring(n, true);
    ExpectCorrect(ring, hand::RingAllGather(ring, true));
    for (LinkModel model : {LinkModel::kHeld, LinkModel::kPipelined}) {
      ExpectCorrect(ring, hand::Timed(ring, hand::RingAllGather(ring, true), 1000, model));
      ExpectCorrect(uniring, hand::Timed(uniring, hand::RingAllReduce(uniring), 1000, model));
    }
  }
}

TEST(VerifierTest, OneRankHasNothingToDo) {
  const Topology alone = hand::MustBuild(Topology::Builder(1));
  for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce,
                              CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll})
    ExpectCorrect(alone, hand::Empty(alone, MustMake(kind, 1), 0));
}

TEST(VerifierTest, SwitchesForwardOneSumAfterTheOther) {
  const Topology star = hand::Star(3);
  Schedule schedule = hand::Empty(star, MustMake(CollectiveKind::kReduce, 3), 4);
  schedule.transfers = {{ShardId{0}, FindLink(star, 1, 3), 0, 1, 0, TransferOp::kCopy},
                        {ShardId{0}, FindLink(star, 3, 0), 0, 1, 1, TransferOp::kReduce},
                        {ShardId{0}, FindLink(star, 2, 3), 0, 1, 2, TransferOp::kCopy},
                        {ShardId{0}, FindLink(star, 3, 0), 0, 1, 3, TransferOp::kReduce}};
  ExpectCorrect(star, schedule);
  schedule.transfers[2].step = 1;  // forwards the old value while the new one comes in
  ExpectCorrect(star, schedule);

  schedule.transfers[0].op = TransferOp::kReduce;
  ExpectFault(star, schedule, Kind::kStructure,
              "transfer 0 reduces in switch 3, which only forwards");
}

// Ranks 1 and 2 send to switch 3, which adds, and rank 0 gets the sum.
TEST(VerifierTest, SwitchesThatReduceAdd) {
  Topology::Builder builder(3, 1);
  for (int32_t rank = 0; rank < 3; ++rank) builder.AddDuplex(NodeId{rank}, NodeId{3}, {});
  builder.SetReduces(NodeId{3});
  const Topology star = hand::MustBuild(std::move(builder));
  Schedule schedule = hand::Empty(star, MustMake(CollectiveKind::kReduce, 3), 2);
  schedule.transfers = {{ShardId{0}, FindLink(star, 1, 3), 0, 1, 0, TransferOp::kReduce},
                        {ShardId{0}, FindLink(star, 2, 3), 0, 1, 0, TransferOp::kReduce},
                        {ShardId{0}, FindLink(star, 3, 0), 0, 1, 1, TransferOp::kReduce}};
  ExpectCorrect(star, schedule);

  Schedule copies = schedule;
  copies.transfers[1].op = TransferOp::kCopy;  // two values of one step, one of which is lost
  ExpectFault(star, copies, Kind::kOverwrite,
              "transfer 1 in step 0: 0..1 of shard 0 is copied to switch 3 over link 2 -> 3 at the "
              "same time as transfer 0 reduces into it; which of them counts is open");
  Schedule late = schedule;
  late.transfers[1].step = 1;  // the sum leaves without it
  ExpectFault(star, late, Kind::kPostcondition,
              "in the end rank 0 lacks 1 of 3 contributions to 0..1 of shard 0, that of rank 2 "
              "first");
  Schedule twice = schedule;
  twice.num_steps = 4;
  twice.transfers.push_back({ShardId{0}, FindLink(star, 1, 3), 0, 1, 2, TransferOp::kReduce});
  ExpectFault(star, twice, Kind::kDoubleReduction,
              "transfer 3 in step 2: 0..1 of shard 0 is reduced into switch 3 over link 1 -> 3, "
              "where the contribution of rank 1 would count twice; it is there in step 0 by "
              "transfer 0");
}

TEST(VerifierTest, ZeroWeightBlocksNeedNotMove) {
  const Topology ring = hand::Ring(2, false);
  Schedule schedule =
      hand::Empty(ring, MustMake(CollectiveKind::kAllToAllV, 2, {.demand = {5, 7, 0, 0}}), 1);
  ExpectFault(ring, schedule, Kind::kPostcondition,
              "in the end rank 1 lacks 0..1 of shard 1 (0 to 1)");
  schedule.transfers = {{ShardId{1}, LinkId{0}, 0, 1, 0}};
  ExpectCorrect(ring, schedule);
}

// --- Wrong ones, and what is said of them ------------------------------------------------------

TEST(VerifierMessage, NotHeldNamesWhoWhatWhenWhereAndTheCulprit) {
  const Topology ring = hand::Ring(4, true);
  Schedule schedule = hand::RingAllGather(ring, true);
  // Rank 1 passes on the first half of shard 0 in step 1 over 1 -> 2; now the half comes in step 2.
  ASSERT_EQ(ring.tail(schedule.transfers[0].link), NodeId{0});
  schedule.transfers[0].step = 2;
  SortBySteps(schedule);
  ExpectFault(ring, schedule, Kind::kNotHeld,
              "transfer 9 in step 1: rank 1 does not hold 0..1/2 of shard 0, which it sends over "
              "link 1 -> 2; it arrives only in step 2 by transfer 15");
}

TEST(VerifierMessage, NeverArrives) {
  const Topology ring = hand::Ring(3, false);
  Schedule schedule = hand::RingAllGather(ring, false);
  schedule.transfers.erase(schedule.transfers.begin());
  ExpectFault(ring, schedule, Kind::kNotHeld,
              "transfer 3 in step 1: rank 1 does not hold 0..1 of shard 0, which it sends over "
              "link 1 -> 2; nothing ever brings it there");
  schedule.transfers.erase(schedule.transfers.begin() + 3);
  const VerifyReport report = Judge(ring, schedule);
  ASSERT_EQ(report.num_violations, 2);
  EXPECT_EQ(report.violations[0].message, "in the end rank 1 lacks 0..1 of shard 0");
  EXPECT_EQ(report.violations[1].message, "in the end rank 2 lacks 0..1 of shard 0");
  EXPECT_EQ(report.violations[0].transfer, -1);
}

TEST(VerifierMessage, OneDropIsOneFaultForThoseDownstream) {
  const Topology ring = hand::Ring(8, false);
  Schedule schedule = hand::RingAllGather(ring, false);
  schedule.transfers.erase(schedule.transfers.begin());
  const VerifyReport report = Judge(ring, schedule);
  EXPECT_EQ(report.num_violations, 2);  // rank 1 passes on what it lacks, and lacks it in the end
}

TEST(VerifierMessage, RedundantDelivery) {
  const Topology ring = hand::Ring(3, false);
  Schedule schedule = hand::RingAllGather(ring, false);
  schedule.transfers.push_back(schedule.transfers[1]);
  schedule.transfers.back().step = 1;
  ExpectFault(ring, schedule, Kind::kRedundantDelivery,
              "transfer 6 in step 1: 0..1 of shard 1 arrives at rank 2 over link 1 -> 2, which has "
              "got it already, in step 0 by transfer 1");
  schedule.transfers.back().shard = ShardId{2};
  ExpectFault(ring, schedule, Kind::kNotHeld,
              "transfer 6 in step 1: rank 1 does not hold 0..1 of shard 2, which it sends over "
              "link 1 -> 2; it arrives only in step 1 by transfer 3");
  EXPECT_EQ(Judge(ring, schedule).violations.at(1).message,
            "transfer 6 in step 1: 0..1 of shard 2 arrives at rank 2 over link 1 -> 2, which has "
            "got it already, from the start");
}

TEST(VerifierMessage, DoubleReductionNamesTheContributionAndWhoBroughtIt) {
  const Topology ring = hand::Ring(3, false);
  Schedule schedule = hand::RingReduceScatter(ring);
  // Shard 0 goes 1 -> 2 -> 0; rank 1's contribution comes to rank 2 in step 0.
  schedule.transfers.push_back(schedule.transfers[1]);
  schedule.transfers.back().step = 1;
  ASSERT_EQ(schedule.transfers[1].shard, ShardId{0});
  ExpectFault(
      ring, schedule, Kind::kDoubleReduction,
      "transfer 6 in step 1: 0..1 of shard 0 is reduced into rank 2 over link 1 -> 2, where "
      "the contribution of rank 1 would count twice; it is there in step 0 by transfer 1");
}

TEST(VerifierMessage, OverwriteNamesWhatWouldBeLost) {
  const Topology ring = hand::Ring(3, false);
  Schedule schedule = hand::RingReduceScatter(ring);
  schedule.transfers[1].op = TransferOp::kCopy;
  ExpectFault(ring, schedule, Kind::kOverwrite,
              "transfer 1 in step 0: 0..1 of shard 0 is copied to rank 2 over link 1 -> 2 and "
              "overwrites the contribution of rank 2, which is there from the start");
}

TEST(VerifierMessage, TwoWritesAtOnce) {
  const Topology complete = hand::Complete(3);
  Schedule schedule = hand::Empty(complete, MustMake(CollectiveKind::kReduce, 3), 1);
  schedule.transfers = {{ShardId{0}, FindLink(complete, 1, 0), 0, 1, 0, TransferOp::kReduce},
                        {ShardId{0}, FindLink(complete, 2, 0), 0, 1, 0, TransferOp::kReduce}};
  ExpectCorrect(complete, schedule);
  schedule.transfers[1].op = TransferOp::kCopy;
  ExpectFault(complete, schedule, Kind::kOverwrite,
              "transfer 1 in step 0: 0..1 of shard 0 is copied to rank 0 over link 2 -> 0 at the "
              "same time as transfer 0 reduces into it; which of them counts is open");
}

TEST(VerifierMessage, PostconditionOfAReduction) {
  const Topology ring = hand::Ring(4, false);
  Schedule schedule = hand::RingReduceScatter(ring);
  schedule.transfers.erase(schedule.transfers.begin() + 1);  // shard 0 from rank 1 to rank 2
  ExpectFault(ring, schedule, Kind::kPostcondition,
              "in the end rank 0 lacks 1 of 4 contributions to 0..1 of shard 0, that of rank 1 "
              "first");
}

TEST(VerifierMessage, TimesOfATimedSchedule) {
  // 1000 bytes at 1 GB/s take 1 us, alpha is 0.5 us.
  const Topology ring = hand::Ring(3, false, {1'000'000'000, 500'000});
  Schedule schedule = hand::Timed(ring, hand::RingAllGather(ring, false), 3000, LinkModel::kHeld);
  ExpectCorrect(ring, schedule);
  EXPECT_EQ(schedule.start_ps[3], 1'500'000);
  Schedule early = schedule;
  early.start_ps[5] = early.start_ps[4] = early.start_ps[3] = 1'499'999;
  const VerifyReport report = Judge(ring, early);
  EXPECT_EQ(report.num_violations, 6);  // three too early, on three links still held
  EXPECT_EQ(report.violations[0].message,
            "transfer 3 at 1499999ps: rank 0 does not hold 0..1 of shard 2, which it sends over "
            "link 0 -> 1; it arrives only at 1500ns by transfer 2");
  EXPECT_EQ(report.violations[1].kind, Kind::kLinkOverlap);
  EXPECT_EQ(report.violations[1].message,
            "transfer 3 at 1499999ps: 0..1 of shard 2 takes link 0 -> 1, which transfer 0 (sent at "
            "0ps) holds until 1500ns");
  early.link_model = LinkModel::kPipelined;  // the links are free after 1 us
  EXPECT_EQ(Judge(ring, early).num_violations, 3);
}

TEST(VerifierMessage, MissingLinkAndWrongTopology) {
  const Topology ring = hand::Ring(3, false);
  Schedule schedule = hand::RingAllGather(ring, false);
  Schedule missing = schedule;
  missing.transfers[2].link = LinkId{3};
  ExpectFault(ring, missing, Kind::kMissingLink,
              "transfer 2 uses link 3, which does not exist; the topology has links 0 to 2");
  const Topology other = hand::Ring(3, false, {1, 1});
  const VerifyReport report = Judge(other, schedule);
  ASSERT_EQ(report.num_violations, 1);
  EXPECT_EQ(report.violations[0].kind, Kind::kWrongTopology);
  EXPECT_THAT(report.violations[0].message, HasSubstr("made for another topology"));
  EXPECT_EQ(Judge(hand::Ring(4, false), schedule).violations.at(0).message,
            "the collective is over 3 ranks, the topology has 4");
}

// One fault of structure a row, each one step away from a correct schedule.
TEST(VerifierStructure, NamesEachFault) {
  const Topology ring = hand::Ring(3, false);
  struct Row {
    void (*spoil)(Schedule&);
    const char* message;
  };
  const std::vector<Row> steps{
      {[](Schedule& s) { s.units_per_shard = 0; }, "units_per_shard is 0"},
      {[](Schedule& s) { s.num_steps = -1; }, "num_steps is -1"},
      {[](Schedule& s) { s.start_ps = {0}; }, "1 start times for 6 transfers of a step schedule"},
      {[](Schedule& s) { s.transfers[1].shard = ShardId{3}; }, "transfer 1 carries shard 3;"},
      {[](Schedule& s) { s.transfers[1].shard = ShardId{-1}; }, "transfer 1 carries shard -1;"},
      {[](Schedule& s) { s.transfers[1].end = 0; }, "transfer 1 carries units [0, 0) of shard 1"},
      {[](Schedule& s) { s.transfers[1].end = 2; }, "transfer 1 carries units [0, 2) of shard 1"},
      {[](Schedule& s) { s.transfers[1].begin = -1; }, "units [-1, 1) of shard 1"},
      {[](Schedule& s) { s.transfers[5].step = 2; }, "transfer 5 is in step 2; the schedule has 2"},
      {[](Schedule& s) { s.transfers[0].step = -1; }, "transfer 0 is in step -1;"},
      {[](Schedule& s) { s.transfers[4].step = 0; }, "transfer 4 is in step 0 after a transfer in"},
      {[](Schedule& s) { s.transfers[1].op = TransferOp::kReduce; },
       "transfer 1 reduces, but all-"},
      {[](Schedule& s) { s.transfers[1].op = TransferOp{7}; }, "transfer 1 has the unknown oper"},
      {[](Schedule& s) { s.transfers[1].link = LinkId{-1}; }, "transfer 1 uses link -1, which"},
  };
  for (const Row& row : steps) {
    SCOPED_TRACE(row.message);
    Schedule schedule = hand::RingAllGather(ring, false);
    row.spoil(schedule);
    const VerifyReport report = Judge(ring, schedule);
    ASSERT_FALSE(report.verified());
    EXPECT_THAT(report.violations[0].message, HasSubstr(row.message));
  }
  const std::vector<Row> timed{
      {[](Schedule& s) { s.size_bytes = 0; }, "a timed schedule for a size of 0 bytes"},
      {[](Schedule& s) { s.num_steps = 1; }, "a timed schedule with 1 steps"},
      {[](Schedule& s) { s.start_ps.pop_back(); }, "5 start times for 6 transfers"},
      {[](Schedule& s) { s.transfers[1].step = 1; }, "transfer 1 is in step 1 of a timed schedule"},
      {[](Schedule& s) { s.start_ps[0] = -5; }, "transfer 0 starts at -5 ps, before 0"},
      {[](Schedule& s) { s.start_ps[2] = 9; }, "transfer 3 starts at "},
  };
  for (const Row& row : timed) {
    SCOPED_TRACE(row.message);
    Schedule schedule = hand::Timed(ring, hand::RingAllGather(ring, false), 3, LinkModel::kHeld);
    schedule.start_ps[2] = 0;
    row.spoil(schedule);
    if (schedule.start_ps[2] == 9) schedule.start_ps[3] = 8;
    const VerifyReport report = Judge(ring, schedule);
    ASSERT_FALSE(report.verified());
    EXPECT_THAT(report.violations[0].message, HasSubstr(row.message));
  }
  Schedule schedule = hand::RingAllGather(ring, false);
  EXPECT_THAT(
      Verify(ring, MustMake(CollectiveKind::kAllToAll, 3), schedule).violations.at(0).message,
      HasSubstr("made for all-gather of 3 shards, not for this all-to-all of 9"));
}

TEST(VerifierTest, HugeTimesSaturateInsteadOfWrapping) {
  const Topology ring = hand::Ring(2, false, {1, 0});
  Schedule schedule = hand::Empty(ring, MustMake(CollectiveKind::kAllGather, 2), 0);
  schedule.kind = ScheduleKind::kTimed;
  schedule.size_bytes = int64_t{1} << 62;
  schedule.transfers = {{ShardId{0}, LinkId{0}, 0, 1, 0}, {ShardId{1}, LinkId{1}, 0, 1, 0}};
  schedule.start_ps = {0, int64_t{1} << 61};
  EXPECT_TRUE(Judge(ring, schedule).verified());
}

TEST(VerifierTest, AnInterruptedRunProvesNothing) {
  const Topology ring = hand::Ring(4, false);
  RequestCancel();
  const VerifyReport report = Judge(ring, hand::RingAllGather(ring, false));
  ResetCancel();
  EXPECT_TRUE(report.cancelled);
  EXPECT_FALSE(report.verified());
}

// --- Properties --------------------------------------------------------------------------------

TEST(VerifierProperty, ReportIsTheSameOnAnyNumberOfThreads) {
  const Topology complete = hand::Complete(24);
  Schedule schedule = hand::RelayedAllToAll(complete);
  for (size_t i = 0; i < schedule.transfers.size(); i += 3) schedule.transfers[i].step = 0;
  SortBySteps(schedule);
  SetNumThreads(1);
  const VerifyReport alone = Judge(complete, schedule);
  SetNumThreads(0);
  ASSERT_GT(alone.num_violations, 100);
  ASSERT_EQ(alone.violations.size(), 20u);
  for (int again = 0; again < 5; ++again) {
    const VerifyReport report = Judge(complete, schedule);
    EXPECT_EQ(report.num_violations, alone.num_violations);
    for (size_t i = 0; i < alone.violations.size(); ++i)
      EXPECT_EQ(report.violations.at(i).message, alone.violations[i].message);
  }
}

// Large enough that transfers are grouped block by block, and broken in every way that the grouping looks at.
TEST(VerifierProperty, LargeReportsAreTheSameOnAnyNumberOfThreads) {
  constexpr int32_t kRanks = 200;
  const Topology ring = hand::Ring(kRanks, false);
  const Schedule sound = hand::RingAllReduce(ring);
  ASSERT_GT(sound.transfers.size(), 70'000u);
  const auto judge = [&](const Schedule& schedule, int threads) {
    SetNumThreads(threads);
    VerifyReport report = Verify(ring, schedule.collective, schedule, {200});
    SetNumThreads(0);
    return report;
  };
  for (const int threads : {1, 2, 5}) EXPECT_TRUE(judge(sound, threads).verified()) << threads;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Random random(seed);
    Schedule broken = sound;
    for (int fault = 0; fault < 20; ++fault) {
      Transfer& transfer = broken.transfers[random.Below(broken.transfers.size())];
      switch (random.Below(4)) {
        case 0:
          transfer.step = static_cast<int32_t>(random.Below(2 * kRanks - 2));
          break;
        case 1:
          transfer.link = LinkId{kRanks + 1};
          break;
        case 2:
          transfer.op = transfer.op == TransferOp::kCopy ? TransferOp::kReduce : TransferOp::kCopy;
          break;
        case 3:
          transfer = broken.transfers[random.Below(broken.transfers.size())];
          break;
      }
    }
    const VerifyReport alone = judge(broken, 1);
    ASSERT_GT(alone.num_violations, 20) << seed;
    for (const int threads : {2, 5}) {
      const VerifyReport report = judge(broken, threads);
      EXPECT_EQ(report.num_violations, alone.num_violations);
      EXPECT_EQ(report.deliveries, alone.deliveries);
      ASSERT_EQ(report.violations.size(), alone.violations.size());
      for (size_t i = 0; i < alone.violations.size(); ++i)
        EXPECT_EQ(report.violations[i].message, alone.violations[i].message) << seed;
    }
  }
}

TEST(VerifierProperty, KeepsAsManyAsAskedForAndCountsAll) {
  const Topology ring = hand::Ring(6, false);
  Schedule schedule = hand::RingAllGather(ring, false);
  schedule.transfers.clear();
  for (int32_t limit : {-1, 0, 1, 7, 100}) {
    const VerifyReport report = Verify(ring, schedule.collective, schedule, {limit});
    EXPECT_EQ(report.num_violations, 30);
    EXPECT_EQ(report.violations.size(), static_cast<size_t>(std::clamp(limit, 0, 30)));
  }
}

}  // namespace
}  // namespace tutti

// The final pass of ten: transfers moved earlier, useless ones dropped, chunks routed again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ten/compact.h"
#include "ten/input.h"
#include "ten/reroute.h"
#include "ten/timed_schedules.h"
#include "tutti/sched/transform.h"
#include "unit/synth/classic_support.h"
#include "unit/synth/ten_testing.h"

namespace tutti {
namespace {

using ten::Compact;
using ten::Compacted;
using ten_test::ExpectProven;
using ten_test::MustMake;
using ten_test::RandomNetwork;
using test_support::Parse;
using testing::ElementsAre;

LinkId Link(const Topology& topology, int32_t tail, int32_t head) {
  for (LinkId link : topology.OutLinks(NodeId{tail}))
    if (topology.head(link) == NodeId{head}) return link;
  ADD_FAILURE() << "no link " << tail << " -> " << head;
  return LinkId{0};
}

// Links of 1 byte a picosecond and no alpha: a shard of 1000 bytes takes 1000 ps.
Schedule Empty(const Topology& topology, CollectiveKind kind, int64_t size_bytes) {
  Schedule schedule{.collective = *Collective::Make(kind, topology.num_ranks())};
  schedule.kind = ScheduleKind::kTimed;
  schedule.size_bytes = size_bytes;
  schedule.topology_fingerprint = topology.Fingerprint();
  return schedule;
}

void Add(Schedule& schedule, const Topology& topology, int32_t shard, int32_t tail, int32_t head,
         int64_t start, TransferOp op = TransferOp::kCopy) {
  schedule.transfers.push_back({ShardId{shard}, Link(topology, tail, head), 0, 1, 0, op});
  schedule.start_ps.push_back(start);
}

constexpr const char* kPath = "mesh(3,bw=1000000000000,alpha=0us)";

// Along 0 - 1 - 2 shard 0 passes 1 long after it has come there.
TEST(TenCompact, MovesTransfersToTheFirstPlaceBehindWhatTheySend) {
  const Topology topology = Parse(kPath);
  Schedule schedule = Empty(topology, CollectiveKind::kBroadcast, 1000);
  Add(schedule, topology, 0, 0, 1, 500);
  Add(schedule, topology, 0, 1, 2, 9000);
  ExpectProven(topology, schedule);
  const Compacted compacted = Compact(topology, schedule);
  ExpectProven(topology, compacted.schedule);
  EXPECT_THAT(compacted.schedule.start_ps, ElementsAre(0, 1000));
  EXPECT_EQ(compacted.num_moved, 2);
  EXPECT_EQ(compacted.num_dropped, 0);
  EXPECT_EQ(compacted.schedule.transfers, schedule.transfers);
}

// An all-gather whose link 1 -> 2 is free between what it carries.
TEST(TenCompact, FillsGaps) {
  const Topology topology = Parse(kPath);
  Schedule schedule = Empty(topology, CollectiveKind::kAllGather, 3000);
  Add(schedule, topology, 0, 0, 1, 0);
  Add(schedule, topology, 1, 1, 0, 0);
  Add(schedule, topology, 2, 2, 1, 0);
  Add(schedule, topology, 0, 1, 2, 1500);
  Add(schedule, topology, 2, 1, 0, 2000);
  Add(schedule, topology, 1, 1, 2, 2500);
  ExpectProven(topology, schedule);
  const Compacted compacted = Compact(topology, schedule);
  ExpectProven(topology, compacted.schedule);
  EXPECT_EQ(CompletionPs(topology, compacted.schedule), 2000);
}

// A chunk that went to a rank which neither wants it nor sends it on, and one that came twice.
TEST(TenCompact, DropsWhatNobodyNeeds) {
  const Topology topology = Parse(kPath);
  Schedule schedule = Empty(topology, CollectiveKind::kScatter, 3000);  // root 0
  Add(schedule, topology, 1, 0, 1, 0);
  Add(schedule, topology, 2, 0, 1, 1000);
  Add(schedule, topology, 1, 1, 2, 1000);  // not wanted at 2
  Add(schedule, topology, 2, 1, 2, 2000);
  ExpectProven(topology, schedule);
  Compacted compacted = Compact(topology, schedule);
  ExpectProven(topology, compacted.schedule);
  EXPECT_EQ(compacted.num_dropped, 1);
  EXPECT_EQ(compacted.schedule.transfers.size(), 3U);

  Add(schedule, topology, 2, 0, 1, 3000);  // there already
  EXPECT_FALSE(Verify(topology, schedule.collective, schedule).verified());
  compacted = Compact(topology, schedule);
  ExpectProven(topology, compacted.schedule);
  EXPECT_EQ(compacted.num_dropped, 2);
}

// The sum of shard 0 is complete at rank 0 at 2000; its copy may not come to rank 2 before rank 2
// has sent its part, nor leave before the sum is there. Reductions stay where they are.
TEST(TenCompact, KeepsSumsWhole) {
  const Topology topology = Parse("mesh(2,bw=1000000000000,alpha=0us)");
  Schedule schedule = Empty(topology, CollectiveKind::kAllReduce, 2000);
  Add(schedule, topology, 0, 1, 0, 700, TransferOp::kReduce);
  Add(schedule, topology, 1, 0, 1, 900, TransferOp::kReduce);
  Add(schedule, topology, 0, 0, 1, 5000);
  Add(schedule, topology, 1, 1, 0, 6000);
  ExpectProven(topology, schedule);
  const Compacted compacted = Compact(topology, schedule);
  ExpectProven(topology, compacted.schedule);
  EXPECT_THAT(compacted.schedule.start_ps, ElementsAre(700, 900, 1900, 1900));
  EXPECT_EQ(compacted.num_moved, 2);
}

TEST(TenCompact, StepsTakeWhatTheirLinksHaveRoomForAndEmptyOnesVanish) {
  const Topology topology = Parse("mesh(3)");
  Schedule schedule{.collective = *Collective::Make(CollectiveKind::kAllGather, 3)};
  schedule.topology_fingerprint = topology.Fingerprint();
  schedule.num_steps = 7;
  const auto add = [&](int32_t shard, int32_t tail, int32_t head, int32_t step) {
    schedule.transfers.push_back({ShardId{shard}, Link(topology, tail, head), 0, 1, step});
  };
  add(0, 0, 1, 1);
  add(1, 1, 0, 1);
  add(2, 2, 1, 2);
  add(0, 1, 2, 4);
  add(2, 1, 0, 5);
  add(1, 1, 2, 6);
  ExpectProven(topology, schedule);
  const Compacted compacted = Compact(topology, schedule);
  ExpectProven(topology, compacted.schedule);
  EXPECT_EQ(compacted.schedule.num_steps, 2);
  EXPECT_EQ(AnalyticCost(topology, compacted.schedule).tb, Rational(4, 3));
}

// What is moved in time, at random: later starts in the order there was, and idle steps.
Schedule Spoiled(const Schedule& schedule, Random& random) {
  Schedule spoiled = schedule;
  if (schedule.kind == ScheduleKind::kTimed) {
    int64_t later = 0;
    for (int64_t& start : spoiled.start_ps) {
      if (random.Below(4) == 0) later += static_cast<int64_t>(random.Below(1'000'000));
      start += later;
    }
    return spoiled;
  }
  std::vector<int32_t> new_step;
  int32_t next = 0;
  for (int32_t step = 0; step < schedule.num_steps; ++step) {
    next += random.Below(3) == 0 ? 1 : 0;
    new_step.push_back(next++);
  }
  for (Transfer& transfer : spoiled.transfers)
    transfer.step = new_step[static_cast<size_t>(transfer.step)];
  spoiled.num_steps = next + static_cast<int32_t>(random.Below(2));
  return spoiled;
}

// Blocks passed on to ranks that do not want them, when all is over.
void AddUseless(const Topology& topology, Schedule& schedule, Random& random) {
  const int64_t end = CompletionPs(topology, schedule);
  for (LinkId link : topology.Links()) {
    if (random.Below(2) == 0) continue;
    const NodeId tail = topology.tail(link);
    for (ShardId shard : schedule.collective.Shards()) {
      if (schedule.collective.destinations(shard).one != tail) continue;
      const bool was_there = std::any_of(
          schedule.transfers.begin(), schedule.transfers.end(), [&](const Transfer& transfer) {
            return transfer.shard == shard &&
                   (topology.head(transfer.link) == topology.head(link) ||
                    topology.tail(transfer.link) == topology.head(link));
          });
      if (was_there) continue;
      schedule.transfers.push_back({shard, link, 0, schedule.units_per_shard, 0});
      schedule.start_ps.push_back(end);
      break;
    }
  }
}

TEST(TenCompactProperty, NeverWorseAndStillCorrect) {
  using Kind = CollectiveKind;
  int64_t dropped = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const Topology topology = RandomNetwork(random, seed % 3 == 0);
    for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce, Kind::kBroadcast,
                      Kind::kReduce, Kind::kGather, Kind::kScatter, Kind::kAllToAll}) {
      SCOPED_TRACE(testing::Message() << seed << ' ' << Name(kind));
      const SynthOptions options{
          .chunks = static_cast<int32_t>(1 + random.Below(3)),
          .size_bytes = int64_t{1} << (10 + random.Below(20)),
          .link_model = random.Below(2) == 0 ? LinkModel::kHeld : LinkModel::kPipelined,
          .tries = 1,
          .final_pass = false};
      const Schedule made = MustMake(topology, kind, options);
      Schedule spoiled = Spoiled(made, random);
      const bool is_timed = made.kind == ScheduleKind::kTimed;
      const size_t needed = spoiled.transfers.size();
      if (is_timed && (kind == Kind::kScatter || kind == Kind::kAllToAll))
        AddUseless(topology, spoiled, random);
      ExpectProven(topology, spoiled);
      for (const Schedule* before : {&std::as_const(made), &std::as_const(spoiled)}) {
        const Compacted compacted = Compact(topology, *before);
        ExpectProven(topology, compacted.schedule);
        EXPECT_EQ(compacted.schedule.transfers.size() + static_cast<size_t>(compacted.num_dropped),
                  before->transfers.size());
        EXPECT_LE(compacted.schedule.transfers.size(), needed);
        dropped += compacted.num_dropped;
        if (is_timed) {
          EXPECT_LE(CompletionPs(topology, compacted.schedule), CompletionPs(topology, *before));
        } else {
          EXPECT_LE(compacted.schedule.num_steps, before->num_steps);
          EXPECT_LE(AnalyticCost(topology, compacted.schedule).tb,
                    AnalyticCost(topology, *before).tb);
        }
        EXPECT_EQ(Compact(topology, *before).schedule, compacted.schedule);
      }
    }
  }
  EXPECT_GT(dropped, 100);
}

// Schedules of others, with intervals of several units and half shards.
TEST(TenCompactProperty, SchedulesOfOtherAlgorithmsStayCorrect) {
  for (const char* name : {"ring", "bfb", "rhd", "dbt", "direct", "themis"}) {
    const Topology topology = Parse("hypercube(3)");
    const Collective collective =
        classic_test::CollectiveFor(name, CollectiveKind::kAllReduce, topology.num_ranks());
    const Result<Schedule> made =
        classic_test::Synthesize(name, topology, collective, {.size_bytes = 1 << 20});
    if (!made) continue;
    SCOPED_TRACE(name);
    const Compacted compacted = Compact(topology, *made);
    ExpectProven(topology, compacted.schedule);
    EXPECT_EQ(compacted.num_dropped, 0);
    if (made->kind == ScheduleKind::kStep) {
      EXPECT_LE(compacted.schedule.num_steps, made->num_steps);
      EXPECT_LE(AnalyticCost(topology, compacted.schedule).tb, AnalyticCost(topology, *made).tb);
    }
  }
}

TEST(TenReroute, NeverLaterAndStillCorrect) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomNetwork(random, false);
    const CollectiveKind kind =
        seed % 2 == 0 ? CollectiveKind::kAllGather : CollectiveKind::kBroadcast;
    const Collective collective = *Collective::Make(kind, topology.num_ranks());
    const SynthOptions options{
        .chunks = static_cast<int32_t>(1 + random.Below(4)),
        .size_bytes = int64_t{1} << (10 + random.Below(20)),
        .link_model = random.Below(2) == 0 ? LinkModel::kHeld : LinkModel::kPipelined,
        .tries = 1,
        .final_pass = false};
    const Result<ten::Input> input = ten::MakeInput(topology, collective, options, 0, 1);
    ASSERT_TRUE(input.has_value());
    const Result<Schedule> made = ten::MakeInEvents(*input, options);
    ASSERT_TRUE(made.has_value());
    const Result<Schedule> rerouted = ten::Reroute(*input, *made, 4);
    ASSERT_TRUE(rerouted.has_value());
    ExpectProven(topology, *rerouted);
    EXPECT_LE(CompletionPs(topology, *rerouted), CompletionPs(topology, *made));
  }
}

// Two boxes of four by two behind slow links: what random choices lose is found again.
TEST(TenReroute, GainsOnUnequalLinks) {
  const Topology topology = Parse("unwind(rfs(2,4,4,bw=[200,100,50]GB/s),degree=1)");
  const auto end = [&](bool final_pass) {
    return CompletionPs(topology, MustMake(topology, CollectiveKind::kAllGather,
                                           {.chunks = 4, .tries = 1, .final_pass = final_pass}));
  };
  EXPECT_LT(10 * end(true), 9 * end(false));
}

}  // namespace
}  // namespace tutti

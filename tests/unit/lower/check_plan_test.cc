#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "schedules.h"
#include "tutti/base/random.h"
#include "tutti/lower/lowering.h"

namespace tutti {
namespace {

using namespace testing_lower;  // NOLINT: test helpers

Plan MustLower(const Topology& topology, const Schedule& schedule,
               const LowerOptions& options = {}) {
  Result<Plan> plan = Lower(topology, schedule, options);
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  return std::move(plan).value();
}

std::string AllFaults(const Plan& plan, const CheckOptions& options = {}) {
  std::string text;
  for (const PlanFault& fault : CheckPlan(plan, options)) text += fault.message + "\n";
  return text;
}

// In and out of place, with queues of any depth, over one or more channels.
void ExpectCorrect(const Topology& topology, const Schedule& schedule) {
  for (const int32_t channels : {1, 3}) {
    LowerOptions options;
    options.channels = channels;
    const Plan plan = MustLower(topology, schedule, options);
    for (const bool in_place : {false, true})
      for (const int32_t depth : {0, 1, 2, 64}) {
        CheckOptions check;
        check.fifo_depth = depth;
        check.in_place = in_place;
        EXPECT_EQ(AllFaults(plan, check), "")
            << "depth " << depth << " in place " << in_place << " channels " << channels << "\n"
            << PlanToText(plan);
      }
  }
}

// --- What the lowering makes is correct -------------------------------------------------------

TEST(CheckPlanTest, RingsAreCorrect) {
  for (int32_t n = 2; n <= 8; ++n) {
    SCOPED_TRACE(n);
    const Topology ring = UniRing(n);
    ExpectCorrect(ring, RingAllGather(ring));
    ExpectCorrect(ring, RingAllGather(ring, 5));
    ExpectCorrect(ring, RingReduceScatter(ring));
    ExpectCorrect(ring, RingAllReduce(ring));
  }
}

TEST(CheckPlanTest, DirectAllToAllIsCorrectAlsoWithUnequalBlocks) {
  for (int32_t n = 2; n <= 6; ++n) {
    const Topology complete = Complete(n);
    ExpectCorrect(complete, DirectAllToAll(complete, MustMake(CollectiveKind::kAllToAll, n)));
    Collective::Options options;
    for (int32_t i = 0; i < n * n; ++i) options.demand.push_back(i % 3 * 100);
    const Schedule schedule =
        DirectAllToAll(complete, MustMake(CollectiveKind::kAllToAllV, n, options));
    ExpectCorrect(complete, schedule);
    const Plan plan = MustLower(complete, schedule);
    EXPECT_EQ(plan.ranks[0].input_weights[1], 100);
    EXPECT_EQ(plan.ranks[1].output_weights[0], 100);
  }
}

TEST(CheckPlanTest, RelayedBlocksPassThroughScratch) {
  // Block 0 -> 3 along a path; the others need no relay or lie on the way.
  const Topology path = Path(4);
  Schedule schedule = Empty(path, MustMake(CollectiveKind::kAllToAll, 4));
  for (int32_t s = 0; s < 4; ++s)
    for (int32_t d = 0; d < 4; ++d)
      for (int32_t at = s, hop = 0; at != d; ++hop) {
        const int32_t next = d > s ? at + 1 : at - 1;
        // One step a hop and block, so that nothing overlaps.
        Add(schedule, (s * 4 + d) * 3 + hop, s * 4 + d, LinkOf(path, at, next));
        at = next;
      }
  ExpectCorrect(path, schedule);
  EXPECT_EQ(MustLower(path, schedule).ranks[1].scratch_slots, 4);  // 0<->2, 0<->3
}

TEST(CheckPlanTest, RootedCollectivesAlongAPathAreCorrect) {
  const Topology path = Path(4);
  Collective::Options options;
  options.root = 1;
  Schedule broadcast = Empty(path, MustMake(CollectiveKind::kBroadcast, 4, options), 6);
  Add(broadcast, 0, 0, LinkOf(path, 1, 0));
  Add(broadcast, 0, 0, LinkOf(path, 1, 2));
  Add(broadcast, 1, 0, LinkOf(path, 2, 3));
  ExpectCorrect(path, broadcast);

  Schedule reduce = Empty(path, MustMake(CollectiveKind::kReduce, 4, options), 6);
  Add(reduce, 0, 0, LinkOf(path, 3, 2), TransferOp::kReduce);
  Add(reduce, 1, 0, LinkOf(path, 0, 1), TransferOp::kReduce);
  Add(reduce, 1, 0, LinkOf(path, 2, 1), TransferOp::kReduce);
  ExpectCorrect(path, reduce);

  Schedule gather = Empty(path, MustMake(CollectiveKind::kGather, 4, options));
  Add(gather, 0, 3, LinkOf(path, 3, 2));
  Add(gather, 0, 0, LinkOf(path, 0, 1));
  Add(gather, 1, 2, LinkOf(path, 2, 1));
  Add(gather, 1, 3, LinkOf(path, 2, 1));
  ExpectCorrect(path, gather);

  Schedule scatter = Empty(path, MustMake(CollectiveKind::kScatter, 4, options));
  Add(scatter, 0, 3, LinkOf(path, 1, 2));
  Add(scatter, 1, 2, LinkOf(path, 1, 2));
  Add(scatter, 1, 3, LinkOf(path, 2, 3));
  Add(scatter, 1, 0, LinkOf(path, 1, 0));
  ExpectCorrect(path, scatter);
}

TEST(CheckPlanTest, PartnersThatExchangePartialSumsInOneStepDoNotWaitForEachOther) {
  // Recursive doubling of the whole buffer: both ends send what they overwrite in the same step.
  const Topology complete = Complete(8);
  Collective::Options options;
  options.all_reduce_shards = 1;
  Schedule schedule = Empty(complete, MustMake(CollectiveKind::kAllReduce, 8, options), 3);
  for (int32_t t = 0; t < 3; ++t)
    for (int32_t r = 0; r < 8; ++r)
      Add(schedule, t, 0, LinkOf(complete, r, r ^ (1 << t)), TransferOp::kReduce);
  ExpectCorrect(complete, schedule);
}

TEST(CheckPlanTest, ParallelLinksUseSeparateChannels) {
  Topology::Builder builder(2);
  for (int k = 0; k < 2; ++k) builder.AddDuplex(NodeId{0}, NodeId{1}, {});
  const Topology pair = MustBuild(std::move(builder));
  Schedule schedule = Empty(pair, MustMake(CollectiveKind::kAllGather, 2), 2);
  for (int32_t l = 0; l < 4; ++l)
    schedule.transfers.push_back(
        {ShardId{l / 2}, LinkId{l}, l % 2, l % 2 + 1, 0, TransferOp::kCopy});
  schedule.num_steps = 1;
  ExpectCorrect(pair, schedule);
  EXPECT_EQ(MustLower(pair, schedule).num_channels, 2);
}

TEST(CheckPlanTest, TimedSchedulesForwardWhatHasArrivedAndReduceInOrderOfArrival) {
  // 2 -> 1 is slow: rank 1 passes on what it got from 0 before that arrives, then the rest.
  Topology::Builder builder(4);
  builder.AddDuplex(NodeId{0}, NodeId{1}, {});
  builder.AddDuplex(NodeId{2}, NodeId{1}, {1'000'000'000, 9'000'000});
  builder.AddDuplex(NodeId{1}, NodeId{3}, {});
  const Topology star = MustBuild(std::move(builder));
  Collective::Options options;
  options.root = 3;
  Schedule schedule = Empty(star, MustMake(CollectiveKind::kReduce, 4, options));
  schedule.kind = ScheduleKind::kTimed;
  schedule.size_bytes = 1000;
  Add(schedule, 0, 0, LinkOf(star, 2, 1), TransferOp::kReduce);
  Add(schedule, 0, 0, LinkOf(star, 0, 1), TransferOp::kReduce);
  Add(schedule, 0, 0, LinkOf(star, 1, 3), TransferOp::kReduce);
  schedule.num_steps = 0;
  schedule.start_ps = {0, 0, 20'000'000};
  ExpectCorrect(star, schedule);
  // Too early: rank 2's contribution is lost.
  schedule.start_ps[2] = 5'000'000;
  EXPECT_THAT(AllFaults(MustLower(star, schedule)),
              testing::HasSubstr("without the contribution of rank 2"));
}

TEST(CheckPlanTest, NeighbouringShardsOfOneStepBecomeOneMessage) {
  const Topology path = Path(3);
  Schedule schedule = Empty(path, MustMake(CollectiveKind::kAllGather, 3), 4);
  Add(schedule, 0, 0, LinkOf(path, 0, 1));
  Add(schedule, 0, 2, LinkOf(path, 2, 1));
  Add(schedule, 0, 1, LinkOf(path, 1, 0));
  Add(schedule, 0, 1, LinkOf(path, 1, 2));
  Add(schedule, 1, 0, LinkOf(path, 1, 2));
  Add(schedule, 1, 2, LinkOf(path, 1, 0));
  ExpectCorrect(path, schedule);
  schedule.transfers.erase(schedule.transfers.begin() + 3);
  Add(schedule, 1, 1, LinkOf(path, 1, 2));
  // Shards 0 and 1 go together, if both lie in the output; the own one lies in the input.
  ExpectCorrect(path, schedule);
  EXPECT_EQ(MustLower(path, schedule).ranks[2].streams[1].instructions.size(), 2u);
}

// --- Bad schedules -----------------------------------------------------------------------------

struct BadSchedule {
  const char* name;
  std::function<void(Schedule&)> spoil;
  const char* message;
};

TEST(LowerRejects, NamesTheFault) {
  const Topology ring = UniRing(3);
  const std::vector<BadSchedule> table{
      {"NotHeld", [](Schedule& s) { s.transfers[0].shard = ShardId{1}; },
       "rank 0 sends units [0, 1) of shard 1 to rank 1 without holding them"},
      {"Missing", [](Schedule& s) { s.transfers.pop_back(); }, "rank 0 never receives"},
      {"Twice", [](Schedule& s) { s.transfers.insert(s.transfers.begin(), s.transfers[0]); },
       "rank 0 sends units [0, 1) of shard 0 twice to rank 1"},
      {"ReduceIntoNothing", [](Schedule& s) { s.transfers[0].op = TransferOp::kReduce; },
       "rank 1 reduces units [0, 1) of shard 0 from rank 0 without holding any"},
      {"OtherTopology", [](Schedule& s) { s.topology_fingerprint ^= 1; }, "another topology"},
      {"OutOfRange", [](Schedule& s) { s.transfers[1].link = LinkId{99}; }, "transfer 1"},
      {"OutOfOrder", [](Schedule& s) { std::swap(s.transfers[0], s.transfers[5]); }, "ascend"},
      {"StartTimes", [](Schedule& s) { s.start_ps = {1}; }, "1 start times for 6 transfers"},
      {"OtherRanks", [](Schedule& s) { s.collective = MustMake(CollectiveKind::kAllGather, 4); },
       "the collective has 4 ranks, the topology 3"}};
  for (const BadSchedule& bad : table) {
    Schedule schedule = RingAllGather(ring);
    bad.spoil(schedule);
    const Result<Plan> plan = Lower(ring, schedule);
    ASSERT_FALSE(plan.has_value()) << bad.name;
    EXPECT_EQ(plan.error().code, ErrorCode::kInvalidArgument) << bad.name;
    EXPECT_THAT(plan.error().message, testing::HasSubstr(bad.message)) << bad.name;
  }
}

// --- Mutants of a correct plan ------------------------------------------------------------------

struct Mutant {
  const char* name;
  std::function<void(Plan&)> spoil;
  std::vector<std::string> says;
};

Instruction& At(Plan& plan, size_t rank, size_t stream, size_t instruction) {
  return plan.ranks[rank].streams[stream].instructions[instruction];
}

// Rank r of the ring of 4: stream 0 sends, stream 1 receives. First reduce-scatter, then all-gather.
std::vector<Mutant> Mutants() {
  return {
      {"MissingDependency",
       [](Plan& p) { At(p, 1, 0, 1).after.clear(); },
       {"rank 1 stream 0 instruction 1"}},
      {"MissingLaterDependency",
       [](Plan& p) { At(p, 2, 0, 3).after.clear(); },
       {"rank 2 stream 0 instruction 3", "rank 2 stream 1 instruction 2", "no certain order"}},
      {"SwappedReceives",
       [](Plan& p) { std::swap(At(p, 0, 1, 0), At(p, 0, 1, 1)); },
       {"rank 0 stream 1 instruction 0", "reduces unit"}},
      {"WrongOffset",
       [](Plan& p) { At(p, 3, 1, 4).dst.offset ^= 1; },
       {"rank 3", "should end with"}},
      {"OffsetOutside",
       [](Plan& p) { At(p, 3, 1, 4).dst.offset = 4; },
       {"rank 3 stream 1 instruction 4: writes output [4, 5), the buffer has 4 units"}},
      {"WrongCount",
       [](Plan& p) { At(p, 2, 0, 0).count = 2; },
       {"rank 2 stream 0 instruction 0 sends 2 units, rank 3 stream 1 instruction 0 receives 1"}},
      {"DroppedSend",
       [](Plan& p) { p.ranks[1].streams[0].instructions.pop_back(); },
       {"rank 2 stream 1 instruction 5", "rank 1 never sends"}},
      {"DroppedReceive",
       [](Plan& p) { p.ranks[2].streams[1].instructions.pop_back(); },
       {"rank 1 stream 0 instruction 5", "rank 2 never receives"}},
      {"ReducedTwice",
       [](Plan& p) {
         At(p, 1, 1, 3).op = OpCode::kRecvReduce;
         At(p, 1, 1, 3).src = {Buffer::kInput, At(p, 1, 1, 3).dst.offset};
       },
       {"rank 1 stream 1 instruction 3", "counts the contribution of rank", "twice"}},
      {"NotReduced",
       [](Plan& p) { At(p, 1, 1, 0).op = OpCode::kRecv; },
       {"without the contribution of rank 1"}},
      {"Cycle",
       [](Plan& p) {
         At(p, 0, 0, 0).after.push_back({1, 5});
       },
       {"deadlock", "rank 0 stream 0 instruction 0 waits for rank 0 stream 1"}},
      {"NoSuchStream",
       [](Plan& p) {
         At(p, 0, 0, 0).after.push_back({7, 0});
       },
       {"rank 0 stream 0 instruction 0: waits for stream 7 instruction 0, which does not exist"}},
      {"OwnStream",
       [](Plan& p) {
         At(p, 0, 0, 2).after.push_back({0, 1});
       },
       {"rank 0 stream 0 instruction 2: waits for its own stream"}},
      {"SelfPeer",
       [](Plan& p) { p.ranks[2].streams[0].send_peer = 2; },
       {"rank 2 stream 0: send peer 2"}},
      {"NoPeer",
       [](Plan& p) { p.ranks[2].streams[1].recv_peer = -1; },
       {"rank 2 stream 1 instruction 0: receives, and the stream has no receive peer"}},
      {"OtherChannel",
       [](Plan& p) { p.ranks[2].streams[0].channel = 1; },
       {"rank 2 stream 0 instruction 0: rank 3 never receives it over channel 1"}},
      {"TwoSenders",
       [](Plan& p) { p.ranks[0].streams.push_back(p.ranks[0].streams[0]); },
       {"rank 0 stream 0 and rank 0 stream 2 both send to the same peer over channel 0"}},
      {"WritesInput",
       [](Plan& p) { At(p, 0, 1, 5).dst.buffer = Buffer::kInput; },
       {"rank 0 stream 1 instruction 5: writes the input buffer"}},
      {"NegativeCount",
       [](Plan& p) { At(p, 0, 1, 5).count = -1; },
       {"rank 0 stream 1 instruction 5: an offset or count is -1"}},
      {"MissingSlots", [](Plan& p) { p.ranks[3].output_slots = 3; }, {"rank 3", "4 and 4"}},
      {"MissingRank", [](Plan& p) { p.ranks.pop_back(); }, {"3 ranks, its collective 4"}}};
}

TEST(CheckPlanTest, EveryMutantIsCaughtAndTheCulpritNamed) {
  const Topology ring = UniRing(4);
  const Plan correct = MustLower(ring, RingAllReduce(ring));
  ASSERT_EQ(AllFaults(correct), "");
  for (const Mutant& mutant : Mutants()) {
    Plan plan = correct;
    mutant.spoil(plan);
    const std::string faults = AllFaults(plan);
    for (const std::string& text : mutant.says)
      EXPECT_THAT(faults, testing::HasSubstr(text)) << mutant.name;
  }
}

TEST(CheckPlanTest, AQueueTooShortIsADeadlock) {
  // Both send twice before they receive.
  const Topology pair = Complete(2);
  Plan plan = MustLower(pair, RingAllGather(pair, 2));
  for (RankPlan& rank : plan.ranks) {
    Stream both = rank.streams[0];
    both.recv_peer = both.send_peer;
    both.instructions = {rank.streams[0].instructions[0], rank.streams[0].instructions[0],
                         rank.streams[1].instructions[0], rank.streams[1].instructions[0]};
    for (size_t i = 0; i < 4; ++i) {
      Instruction& instruction = both.instructions[i];
      instruction.count = 1;
      (i < 2 ? instruction.src : instruction.dst).offset += static_cast<int64_t>(i % 2);
    }
    rank.streams = {both, rank.streams[2]};
  }
  CheckOptions options;
  options.fifo_depth = 2;
  EXPECT_EQ(AllFaults(plan, options), "");
  options.fifo_depth = 1;
  EXPECT_EQ(AllFaults(plan, options),
            "deadlock: rank 0 stream 0 instruction 1 waits for room in the queue to rank 1; rank 1 "
            "stream 0 instruction 1 waits for room in the queue to rank 0\n");
}

TEST(CheckPlanTest, RandomDamageIsCaught) {
  const Topology ring = UniRing(5);
  const Plan correct = MustLower(ring, RingAllReduce(ring));
  Random random(7);
  for (int seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Plan plan = correct;
    const auto r = static_cast<size_t>(random.Below(5));
    const auto s = static_cast<size_t>(random.Below(2));
    std::vector<Instruction>& list = plan.ranks[r].streams[s].instructions;
    const auto i = static_cast<size_t>(random.Below(list.size()));
    switch (random.Below(4)) {
      case 0:
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      case 1:
        (s == 0 ? list[i].src : list[i].dst).offset =
            ((s == 0 ? list[i].src : list[i].dst).offset + 1) % 4;
        break;
      case 2:
        list[i].count += 1;
        break;
      default:
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), list[i]);
    }
    EXPECT_NE(AllFaults(plan), "");
  }
}

}  // namespace
}  // namespace tutti

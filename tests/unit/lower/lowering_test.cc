#include "tutti/lower/lowering.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "schedules.h"

namespace tutti {
namespace {

using namespace testing_lower;  // NOLINT: test helpers

std::string TextOf(const Topology& topology, const Schedule& schedule) {
  const Result<Plan> plan = Lower(topology, schedule);
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  return plan ? PlanToText(*plan) : "";
}

// --- Worked examples ------------------------------------------------------------------------

TEST(LoweringTest, AllGatherOfTwoSendsFromTheInputAndCopiesItsOwn) {
  const Topology ring = UniRing(2);
  EXPECT_EQ(TextOf(ring, RingAllGather(ring)),
            "plan all-gather ranks=2 units_per_shard=1 channels=1 algorithm=by-hand\n"
            "rank 0 input=1 output=2 scratch=0\n"
            "  stream 0 send=1 recv=-1 channel=0\n"
            "    0: step 0 send input[0, 1) to 1\n"
            "  stream 1 send=-1 recv=1 channel=0\n"
            "    0: step 0 recv output[1, 2) from 1\n"
            "  stream 2 send=-1 recv=-1 channel=0\n"
            "    0: step 0 copy output[0, 1) = input[0, 1)\n"
            "rank 1 input=1 output=2 scratch=0\n"
            "  stream 0 send=0 recv=-1 channel=0\n"
            "    0: step 0 send input[0, 1) to 0\n"
            "  stream 1 send=-1 recv=0 channel=0\n"
            "    0: step 0 recv output[0, 1) from 0\n"
            "  stream 2 send=-1 recv=-1 channel=0\n"
            "    0: step 0 copy output[1, 2) = input[0, 1)\n");
}

TEST(LoweringTest, ReduceScatterKeepsPartialSumsInScratchAndItsResultInOutput) {
  const Topology ring = UniRing(3);
  const Result<Plan> plan = Lower(ring, RingReduceScatter(ring));
  ASSERT_TRUE(plan.has_value());
  // Rank 0: sends its shard 2, adds rank 2's shard 1 to its own in scratch and passes that on, then
  // adds what rank 2 has of shard 0 to its own.
  const RankPlan& rank = plan->ranks[0];
  ASSERT_EQ(rank.streams.size(), 2u);
  EXPECT_EQ(rank.scratch_slots, 1);
  const Instruction& forward = rank.streams[0].instructions[1];
  EXPECT_EQ(forward.src, (Operand{Buffer::kScratch, 0}));
  EXPECT_EQ(forward.after, (std::vector<Dependency>{{1, 0}}));
  const Instruction& partial = rank.streams[1].instructions[0];
  EXPECT_EQ(partial.op, OpCode::kRecvReduce);
  EXPECT_EQ(partial.src, (Operand{Buffer::kInput, 1}));
  EXPECT_EQ(partial.dst, (Operand{Buffer::kScratch, 0}));
  const Instruction& result = rank.streams[1].instructions[1];
  EXPECT_EQ(result.src, (Operand{Buffer::kInput, 0}));
  EXPECT_EQ(result.dst, (Operand{Buffer::kOutput, 0}));
}

TEST(LoweringTest, RingAllReduceIsTheGoldenPlan) {
  const Topology ring = UniRing(3);
  std::ifstream file("tests/data/plan_ring_allreduce_3.txt");
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(TextOf(ring, RingAllReduce(ring)), golden);
}

TEST(LoweringTest, TheSlotsOfEachCollectiveAreThoseOfTheTable) {
  const auto slots = [](CollectiveKind kind, int32_t rank) {
    Collective::Options options;
    options.root = kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter ? 1 : 0;
    const Collective collective = MustMake(kind, 3, options);
    return std::pair(NumInputSlots(collective, NodeId{rank}),
                     NumOutputSlots(collective, NodeId{rank}));
  };
  EXPECT_EQ(slots(CollectiveKind::kAllGather, 2), (std::pair{1, 3}));
  EXPECT_EQ(slots(CollectiveKind::kReduceScatter, 2), (std::pair{3, 1}));
  EXPECT_EQ(slots(CollectiveKind::kAllReduce, 2), (std::pair{3, 3}));
  EXPECT_EQ(slots(CollectiveKind::kBroadcast, 2), (std::pair{1, 1}));
  EXPECT_EQ(slots(CollectiveKind::kReduce, 2), (std::pair{1, 1}));
  EXPECT_EQ(slots(CollectiveKind::kScatter, 1), (std::pair{3, 1}));
  EXPECT_EQ(slots(CollectiveKind::kScatter, 2), (std::pair{0, 1}));
  EXPECT_EQ(slots(CollectiveKind::kGather, 1), (std::pair{1, 3}));
  EXPECT_EQ(slots(CollectiveKind::kGather, 2), (std::pair{1, 0}));
  EXPECT_EQ(slots(CollectiveKind::kAllToAll, 2), (std::pair{3, 3}));
}

TEST(LoweringTest, InPlaceSlotsAreThoseOfNcclTests) {
  const Collective gather = MustMake(CollectiveKind::kAllGather, 3);
  EXPECT_EQ(InPlaceInputSlot(gather, NodeId{1}, 1), 0);
  EXPECT_EQ(InPlaceInputSlot(gather, NodeId{1}, 2), -1);
  EXPECT_EQ(InPlaceInputSlot(MustMake(CollectiveKind::kReduceScatter, 3), NodeId{2}, 0), 2);
  EXPECT_EQ(InPlaceInputSlot(MustMake(CollectiveKind::kAllReduce, 3), NodeId{2}, 1), 1);
  EXPECT_EQ(InPlaceInputSlot(MustMake(CollectiveKind::kBroadcast, 3), NodeId{0}, 0), 0);
  EXPECT_EQ(InPlaceInputSlot(MustMake(CollectiveKind::kAllToAll, 3), NodeId{0}, 0), -1);
}

TEST(LoweringTest, OneRankOnlyCopies) {
  const Topology alone = MustBuild(Topology::Builder(1));
  EXPECT_EQ(TextOf(alone, Empty(alone, MustMake(CollectiveKind::kAllReduce, 1))),
            "plan all-reduce ranks=1 units_per_shard=1 channels=1 algorithm=by-hand\n"
            "rank 0 input=1 output=1 scratch=0\n"
            "  stream 0 send=-1 recv=-1 channel=0\n"
            "    0: step 0 copy output[0, 1) = input[0, 1)\n");
}

}  // namespace
}  // namespace tutti

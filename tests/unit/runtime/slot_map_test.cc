#include "slot_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hand_plans.h"
#include "program.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> SizesOf(const SlotMap& slots, int32_t rank, Buffer buffer) {
  std::vector<int64_t> sizes;
  for (int32_t slot = 0; slot < slots.NumSlots(rank, buffer); ++slot)
    sizes.push_back(slots.SlotElements(rank, buffer, slot));
  return sizes;
}

TEST(SlotMapTest, AnyCountIsCutIntoShardsThatDifferByOne) {
  const SlotMap slots = SlotMap::ForCount(RingAllReduce(4), 10, 4, false).value();
  // floor(10 / 4) = 2, floor(20 / 4) = 5, floor(30 / 4) = 7, 10.
  EXPECT_THAT(SizesOf(slots, 1, Buffer::kOutput), ElementsAre(2, 3, 2, 3));
  EXPECT_EQ(slots.SlotStart(1, Buffer::kInput, 2), 5);
  const SlotMap few = SlotMap::ForCount(RingAllReduce(4), 1, 4, true).value();
  EXPECT_THAT(SizesOf(few, 0, Buffer::kInput), ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(few.InputShift(0), 0);
}

TEST(SlotMapTest, ARankOfAnAllGatherContributesItsOwnShare) {
  for (const bool in_place : {false, true}) {
    const SlotMap slots = SlotMap::ForCount(RingAllGather(3), 7, 8, in_place).value();
    EXPECT_THAT(SizesOf(slots, 2, Buffer::kOutput), ElementsAre(2, 2, 3));
    EXPECT_THAT(SizesOf(slots, 2, Buffer::kInput), ElementsAre(3));
    EXPECT_EQ(slots.InputShift(2), in_place ? std::optional<int64_t>(4) : std::nullopt);
    EXPECT_EQ(slots.AliasOfInput(2, 0), in_place ? 2 : -1);
  }
}

TEST(SlotMapTest, DemandsAreScaledAndRoundedDown) {
  Plan plan = EmptyPlan(MakeCollective(
      CollectiveKind::kAllToAllV, 2, {.root = 0, .all_reduce_shards = 0, .demand = {0, 3, 5, 1}}));
  for (RankPlan& rank : plan.ranks) rank.input_slots = rank.output_slots = 2;
  // M stands for the largest row, 6: with M of 6 elements, entries are elements.
  const SlotMap exact = SlotMap::ForCount(plan, 6, 4, false).value();
  EXPECT_THAT(SizesOf(exact, 0, Buffer::kInput), ElementsAre(0, 3));
  EXPECT_THAT(SizesOf(exact, 1, Buffer::kInput), ElementsAre(5, 1));
  EXPECT_THAT(SizesOf(exact, 0, Buffer::kOutput), ElementsAre(0, 5));
  const SlotMap half = SlotMap::ForCount(plan, 3, 4, false).value();
  EXPECT_THAT(SizesOf(half, 1, Buffer::kInput), ElementsAre(2, 0));
}

TEST(SlotMapTest, ScratchSlotsHaveTheElementsOfTheirShard) {
  Plan plan = RingAllReduce(3);
  plan.ranks[1].scratch_slots = 2;
  plan.ranks[1].scratch_shards = {2, 0};
  const SlotMap slots = SlotMap::ForCount(plan, 5, 4, false).value();
  EXPECT_THAT(SizesOf(slots, 1, Buffer::kScratch), ElementsAre(2, 1));
  plan.ranks[1].scratch_shards.clear();
  EXPECT_TRUE(SlotMap::ForCount(plan, 6, 4, false).has_value());
  const Result<SlotMap> unknown = SlotMap::ForCount(plan, 5, 4, false);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message,
            "rank 1: its 2 scratch slots name 0 shards, so that 5 elements cannot be cut into "
            "shards that differ");
}

TEST(SlotMapTest, RejectsWhatCannotBe) {
  const auto message = [](const Plan& plan, int64_t count, bool in_place) {
    const Result<SlotMap> slots = SlotMap::ForCount(plan, count, 8, in_place);
    return slots ? std::string("accepted") : slots.error().message;
  };
  EXPECT_THAT(message(RingAllReduce(2), -1, false), HasSubstr("count is negative: -1"));
  EXPECT_THAT(message(RingAllReduce(2), INT64_MAX, false), HasSubstr("2^62"));
  Plan plan = RingAllReduce(2);
  plan.ranks[0].scratch_slots = 1;
  plan.ranks[0].scratch_shards = {2};
  EXPECT_THAT(message(plan, 2, false), HasSubstr("scratch slot 0 holds shard 2; there are 2"));
  plan.ranks[0].scratch_shards = {0, 1};
  EXPECT_THAT(message(plan, 2, false), HasSubstr("1 scratch slots name 2 shards"));
  plan = RingAllReduce(2);
  plan.ranks[0].input_slots = 3;
  EXPECT_THAT(message(plan, 2, false), HasSubstr("rank 0: all-reduce gives it 2 input"));
}

// Equal slots on both sides of a message keep their sizes for every count.
TEST(SlotMapTest, ProgramsOfAnyCountAreMade) {
  for (int64_t count = 0; count < 40; ++count) {
    const Plan plan = RingAllReduce(5);
    const SlotMap slots = SlotMap::ForCount(plan, count, 4, false).value();
    EXPECT_TRUE(MakeProgram(plan, slots, 16).has_value()) << count;
  }
}

}  // namespace
}  // namespace tutti

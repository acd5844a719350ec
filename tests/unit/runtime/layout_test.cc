#include "layout.h"

#include <gtest/gtest.h>

#include "hand_plans.h"
#include "program.h"

namespace tutti {
namespace {

Layout MustMake(const Plan& plan, int64_t size_bytes, bool in_place) {
  RunOptions options;
  options.size_bytes = size_bytes;
  options.in_place = in_place;
  Result<Layout> layout = Layout::Make(plan, options);
  EXPECT_TRUE(layout.has_value()) << layout.error().message;
  return *std::move(layout);
}

TEST(LayoutTest, SlotsFollowOneAnotherAndBuffersHaveGuards) {  // L2
  const Layout layout = MustMake(RingAllGather(3), 3 * 4 * 10, false);
  EXPECT_EQ(layout.SlotElements(0, Buffer::kOutput, 2), 10);
  EXPECT_EQ(layout.SlotOffset(0, Buffer::kOutput, 1) - layout.SlotOffset(0, Buffer::kOutput, 0),
            40);
  int64_t end = 0;
  for (int32_t rank = 0; rank < 3; ++rank)
    for (const Layout::Area& area : layout.AreasOf(rank)) {
      EXPECT_GE(area.offset - Layout::kGuardBytes, end);
      EXPECT_EQ(area.offset % 4096, 0);
      end = area.offset + area.bytes + Layout::kGuardBytes;
    }
  EXPECT_LE(end, layout.total_bytes());
}

TEST(LayoutTest, InPlaceSlotsCoincideAsNcclTestsLaysThemOut) {
  const Layout gather = MustMake(RingAllGather(3), 120, true);
  const Layout reduce = MustMake(RingAllReduce(3), 120, true);
  for (int32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(gather.SlotOffset(rank, Buffer::kInput, 0),
              gather.SlotOffset(rank, Buffer::kOutput, rank));
    EXPECT_EQ(gather.AliasOfInput(rank, 0), rank);
    for (int32_t slot = 0; slot < 3; ++slot)
      EXPECT_EQ(reduce.SlotOffset(rank, Buffer::kInput, slot),
                reduce.SlotOffset(rank, Buffer::kOutput, slot));
  }
  Plan scatter = EmptyPlan(MakeCollective(CollectiveKind::kReduceScatter, 2));
  for (RankPlan& rank : scatter.ranks) {
    rank.input_slots = 2;
    rank.output_slots = 1;
  }
  const Layout scattered = MustMake(scatter, 80, true);
  EXPECT_EQ(scattered.SlotOffset(1, Buffer::kOutput, 0),
            scattered.SlotOffset(1, Buffer::kInput, 1));
  EXPECT_EQ(scattered.AreasOf(1).front().bytes, 80);
}

TEST(ProgramTest, TilesAndUnitsCutASlotWithoutGapOrOverlap) {
  for (const int64_t elements : {1, 7, 64, 1009})
    for (const int64_t tiles : {1, 2, 5, 64})
      for (const int32_t units : {1, 3, 8}) {
        int64_t next = 0;
        for (int64_t tile = 0; tile < tiles; ++tile)
          for (int32_t unit = 0; unit < units; ++unit) {
            Segment segment;
            segment.elements = elements;
            segment.first_unit = unit;
            segment.last_unit = unit + 1;
            const ElementRange range = RangeInTile(segment, units, tile, tiles);
            ASSERT_EQ(range.first, next);
            ASSERT_LE(range.first, range.last);
            next = range.last;
          }
        EXPECT_EQ(next, elements);
      }
}

TEST(ProgramTest, WritesKnowTheSendsThatReadTheSameUnits) {  // G2
  const Plan plan = RingAllReduce(3);
  const auto program = MakeProgram(plan, MustMake(plan, 120, false), 1 << 20);
  ASSERT_TRUE(program.has_value());
  const RankProgram& rank = program->ranks[0];
  const auto hazards_of = [&rank](int32_t step) {
    const Step& at = rank.steps[static_cast<size_t>(step)];
    std::vector<int32_t> ordinals;
    for (int32_t h = at.first_hazard; h < at.last_hazard; ++h)
      ordinals.push_back(rank.hazards[static_cast<size_t>(h)].ordinal);
    return ordinals;
  };
  // Rank 0 sends in[0], out[2], out[1], out[0]; its stream of receives writes out[2], out[1],
  // out[0], out[2].
  const int32_t first = rank.streams[1].first_step;
  EXPECT_EQ(hazards_of(first), (std::vector<int32_t>{1}));
  EXPECT_EQ(hazards_of(first + 1), (std::vector<int32_t>{2}));
  EXPECT_EQ(hazards_of(first + 2), (std::vector<int32_t>{3}));
  EXPECT_EQ(hazards_of(first + 3), (std::vector<int32_t>{1}));
  // In place, in[0] is out[0].
  const auto aliased = MakeProgram(plan, MustMake(plan, 120, true), 1 << 20);
  const Step& last = aliased->ranks[0].steps[static_cast<size_t>(first) + 2];
  EXPECT_EQ(last.last_hazard - last.first_hazard, 2);
}

}  // namespace
}  // namespace tutti

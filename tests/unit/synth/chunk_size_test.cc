// Chunks that exist and are worth their messages: SynthOptions::element_bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bfb_testing.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/bfb.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;
using testing::HasSubstr;

constexpr const char* kSwitched = "unwind(switch2d(4,8,bw=[50,450]GB/s),degree=3)";

TEST(ChunkSizeTest, CountsWholeElementsOfTheLargestShard) {
  const Collective gather = MustCollective(Kind::kAllGather, 4);
  EXPECT_EQ(MostChunks(gather, 1024, 4), 64);  // a shard of 256 bytes
  EXPECT_EQ(MostChunks(gather, 1039, 4), 64);  // 259.75
  EXPECT_EQ(MostChunks(gather, 3, 4), 1);
  const Collective uneven =
      *Collective::Make(Kind::kAllToAllV, 2, {.demand = {0, 100, 36, 0}, .weight_of_size = 100});
  EXPECT_EQ(MostChunks(uneven, 100, 4), 25);
}

// 0.5 us at 50 GB/s are 25,000 bytes.
TEST(ChunkSizeTest, ASixteenthOfAlphaIsWorthNoMessage) {
  EXPECT_EQ(WorthwhileChunkBytes(Parse("ring(4)")), 25'000 / 16);
  EXPECT_EQ(WorthwhileChunkBytes(Parse("mesh(2,3,bw=[10,50]GB/s)")), 5'000 / 16);
  EXPECT_EQ(WorthwhileChunkBytes(Parse("ring(4,alpha=0us)")), 1);
  EXPECT_EQ(WorthwhileChunkBytes(Parse("uniring(1,1)")), 1);
}

TEST(ChunkSizeTest, BfbTakesTheBestNumberOfThoseThatAreWorthWhile) {
  for (const char* expression : {"genkautz(4,13)", "genkautz(3,20)", "dgx1", "circulant(11,1,3)",
                                 kSwitched, "mesh(3,4,bw=[20,50]GB/s,alpha=[1,2]us)"}) {
    const Topology topology = Parse(expression);
    const Collective gather = MustCollective(Kind::kAllGather, topology.num_ranks());
    for (const int64_t size : {int64_t{1} << 12, int64_t{1} << 16, int64_t{1} << 18}) {
      SCOPED_TRACE(std::string(expression) + " " + std::to_string(size));
      const SynthOptions limited{.size_bytes = size, .element_bytes = 4};
      const BfbCost chosen = *ComputeBfbCost(topology, gather, limited);
      const int64_t most =
          MostChunks(gather, size, std::max<int64_t>(4, WorthwhileChunkBytes(topology)));
      ASSERT_LE(chosen.units_per_shard, most);
      // Of equal links the best of all; of others that of the numbers looked at.
      const bool all = topology.is_homogeneous();
      for (int64_t units = all ? 1 : most; units <= most; ++units) {
        const BfbCost other = *ComputeBfbCost(
            topology, gather,
            {.chunks = static_cast<int32_t>(units), .size_bytes = size, .element_bytes = 4});
        EXPECT_LE(chosen.seconds, other.seconds) << units;
        if (all && other.seconds == chosen.seconds) {
          EXPECT_LE(chosen.units_per_shard, units);
        }
      }
    }
  }
}

TEST(ChunkSizeTest, WhatCoarseChunksLoseIsSaid) {
  const Topology topology = Parse(kSwitched);
  const Collective gather = MustCollective(Kind::kAllGather, topology.num_ranks());
  const SynthOptions exact{.size_bytes = 64 << 10};
  const Rational at_best = ComputeBfbCost(topology, gather, exact)->seconds;
  SynthNotes notes;
  SynthOptions options = exact;
  options.element_bytes = 4;
  options.notes = &notes;
  const Schedule schedule = MustSynthesize(topology, gather, options);
  EXPECT_LE(schedule.units_per_shard, 3);
  EXPECT_GT(notes.chunk_loss, 0);
  EXPECT_THAT(notes.remark, HasSubstr(std::to_string(schedule.units_per_shard) + " chunk"));
  // A sixteenth of alpha a step at most; three steps here.
  const Rational seconds = AnalyticSeconds(topology, schedule, options.size_bytes);
  EXPECT_LE((seconds - at_best).ToDouble(), schedule.num_steps * 0.5e-6 / 16);
  // Large enough shards lose nothing.
  notes = {};
  options.size_bytes = int64_t{1} << 30;
  MustSynthesize(Parse("torus(4,4)"), MustCollective(Kind::kAllGather, 16), options);
  EXPECT_EQ(notes.remark, "");
}

TEST(ChunkSizeTest, WhatIsSmallerThanAnElementIsRefused) {
  const Topology topology = Parse("ring(4)");
  const Collective gather = MustCollective(Kind::kAllGather, 4);
  const auto run = [&](const char* name, SynthOptions options) {
    options.size_bytes = 64;
    options.element_bytes = 4;
    return RunSynthesizer(**FindSynthesizer(name), topology, gather, options);
  };
  EXPECT_TRUE(run("ten", {.chunks = 4}).has_value());
  const Result<Schedule> asked = run("ten", {.chunks = 5});
  ASSERT_FALSE(asked.has_value());
  EXPECT_EQ(asked.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(asked.error().message, HasSubstr("5 chunks"));
  EXPECT_THAT(asked.error().message, HasSubstr("at most 4"));
  // One chunk is a shard, however small; what an algorithm needs is no fault of the caller.
  EXPECT_TRUE(RunSynthesizer(**FindSynthesizer("bfb"), topology, gather,
                             {.size_bytes = 1, .element_bytes = 4})
                  .has_value());
  const Result<Schedule> needed = RunSynthesizer(**FindSynthesizer("ring"), topology, gather,
                                                 {.size_bytes = 16, .element_bytes = 4});
  ASSERT_FALSE(needed.has_value());  // two rings halve the shard of one element
  EXPECT_EQ(needed.error().code, ErrorCode::kInfeasible);
}

}  // namespace
}  // namespace tutti

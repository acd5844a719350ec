// The degree that a network with switches is unwound by: the fastest of all there are.
#include "tutti/advise/unwinding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tutti/sched/cost.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/operators.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

WantedCollective Wanted(CollectiveKind kind) {
  return {kind, [kind](const Topology& topology, bool one_shard) {
            return Collective::Make(kind, topology.num_ranks(),
                                    {.all_reduce_shards = one_shard ? 1 : 0});
          }};
}

Rational SecondsOn(const Topology& topology, const Synthesizer& synthesizer, CollectiveKind kind,
                   int64_t size) {
  const Result<Schedule> made = RunSynthesizer(
      synthesizer, topology, *Collective::Make(kind, topology.num_ranks()), {.size_bytes = size});
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return PredictedSeconds(topology, *made, size);
}

TEST(UnwindingTest, TheBestDegreeIsThatOfTryingAll) {
  const Synthesizer& bfb = **FindSynthesizer("bfb");
  for (const std::string expression : {"switch(4)", "switch(6)", "switch2d(2,4,bw=[450,50]GB/s)"})
    for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce})
      for (const int64_t size : {int64_t{1} << 10, int64_t{1} << 30}) {
        const Result<Unwound> best =
            UnwindBest(expression, &bfb, Wanted(kind), {.size_bytes = size});
        ASSERT_TRUE(best.has_value()) << best.error().message;
        const Rational seconds = SecondsOn(best->topology, bfb, kind, size);
        const int64_t largest = *LargestUnwinding(*ParseTopology(expression));
        for (int32_t degree = 1; degree <= largest; ++degree)
          EXPECT_LE(seconds, SecondsOn(UnwindBy(expression, degree)->topology, bfb, kind, size))
              << expression << ", degree " << degree << " of " << best->degree;
      }
}

TEST(UnwindingTest, NetworksWithoutSwitchesStayAndAutoKeepsWhatForwards) {
  const Result<Unwound> torus =
      UnwindBest("torus(3,3)", nullptr, Wanted(CollectiveKind::kAllReduce), {});
  ASSERT_TRUE(torus.has_value());
  EXPECT_EQ(torus->degree, 0);
  EXPECT_TRUE(torus->tried.empty());
  // For what does not reduce the network as it is is one of those tried.
  const Result<Unwound> gather =
      UnwindBest("switch(4)", nullptr, Wanted(CollectiveKind::kAllGather), {});
  ASSERT_TRUE(gather.has_value());
  EXPECT_EQ(gather->tried.front().first, 0);
}

// The same that is made on what was found.
TEST(UnwindingTest, TheSearchHandsOnItsChoice) {
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce}) {
    const WantedCollective wanted = Wanted(kind);
    Result<Unwound> found = UnwindBest("switch(4)", nullptr, wanted, {});
    ASSERT_TRUE(found.has_value() && found->choice.has_value());
    const Collective collective = *wanted.make(found->topology, false);
    const Result<AutoChoice> kept = ChooseOn(*found, collective, {});
    EXPECT_FALSE(found->choice.has_value());
    const Result<AutoChoice> again = ChooseOn(*found, collective, {});
    ASSERT_TRUE(kept.has_value() && again.has_value());
    EXPECT_EQ(kept->schedule, again->schedule);
    EXPECT_EQ(kept->chosen, again->chosen);
  }
}

TEST(UnwindingTest, WhatIsUnwound) {
  const Topology with_switches = *ParseTopology("switch(4)");
  EXPECT_TRUE(TriesUnwindings(with_switches, CollectiveKind::kAllReduce));
  EXPECT_TRUE(TriesUnwindings(with_switches, CollectiveKind::kBroadcast));
  EXPECT_FALSE(TriesUnwindings(with_switches, CollectiveKind::kAllToAll));
  EXPECT_FALSE(TriesUnwindings(*ParseTopology("torus(3,3)"), CollectiveKind::kAllReduce));
  const Result<Unwound> none = UnwindBy("switch(4)", 9);
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message, HasSubstr("degree"));
}

}  // namespace
}  // namespace tutti

// Wirings told apart, the settings that follow, and a ring's time by hand.
#include "tutti/advise/wiring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "advise_support.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

Wiring WiringIn(const std::string& expression) {
  const Topology topology = Parse(expression);
  return WiringOf(topology, FindBoxes(topology));
}

std::string ValueOf(const NcclAdvice& advice, const std::string& variable) {
  for (const NcclSetting& setting : advice.settings)
    if (setting.variable == variable) return setting.value;
  return "not set";
}

bool SomeNoteSays(const NcclAdvice& advice, const std::string& words) {
  return std::any_of(advice.notes.begin(), advice.notes.end(), [&words](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
}

struct WiringCase {
  const char* expression;
  WiringKind kind;
  int32_t machines;
  size_t in_circle;
};

TEST(WiringTest, KindsOfWirings) {
  for (const WiringCase& one :
       std::vector<WiringCase>{{"ring(4)", WiringKind::kRing, 4, 4},
                               {"ring(3)", WiringKind::kAllPairs, 3, 3},
                               {"complete(5)", WiringKind::kAllPairs, 5, 5},
                               {"ring(2)", WiringKind::kAllPairs, 2, 0},
                               {"mesh(4)", WiringKind::kLine, 4, 0},
                               {"torus(2,2)", WiringKind::kRing, 4, 4},
                               {"torus(3,3)", WiringKind::kOther, 9, 9},
                               {"switch(4)", WiringKind::kSwitched, 4, 0},
                               {"dgx_h100(1)", WiringKind::kOneMachine, 1, 0},
                               {"dgx1", WiringKind::kOneMachine, 1, 0},
                               {"dgx_h100(2)", WiringKind::kSwitched, 2, 0}}) {
    SCOPED_TRACE(one.expression);
    const Wiring wiring = WiringIn(one.expression);
    EXPECT_EQ(wiring.kind, one.kind);
    EXPECT_EQ(wiring.machines, one.machines);
    EXPECT_EQ(wiring.circle.size(), one.in_circle);
  }
}

TEST(WiringTest, RailsAreSeparateWhereNothingJoinsThem) {
  EXPECT_TRUE(WiringIn("dgx_h100(2)").separate_rails);
  EXPECT_FALSE(WiringIn("dgx_h100(2,fabric=rails(spines=2))").separate_rails);
  EXPECT_FALSE(WiringIn("cluster(boxes=2,gpus=2,fabric=switch)").separate_rails);
}

TEST(NcclAdviceTest, ARingOfFourMachines) {
  const NcclAdvice advice = AdviseNccl(WiringIn("ring(4)"));
  EXPECT_EQ(ValueOf(advice, "NCCL_ALGO"), "Ring");
  EXPECT_EQ(ValueOf(advice, "NCCL_IB_SUBNET_AWARE_ROUTING"), "1");
  EXPECT_EQ(ValueOf(advice, "NCCL_CROSS_NIC"), "1");
  EXPECT_EQ(ValueOf(advice, "NCCL_IB_HCA"), "");  // only the machine can tell
  EXPECT_TRUE(SomeNoteSays(advice, "nccl#1034"));
}

TEST(NcclAdviceTest, ThreeMachinesInARingAreAllPairs) {
  const NcclAdvice advice = AdviseNccl(WiringIn("ring(3)"));
  EXPECT_EQ(ValueOf(advice, "NCCL_ALGO"), "not set");
  EXPECT_EQ(ValueOf(advice, "NCCL_IB_SUBNET_AWARE_ROUTING"), "1");
  EXPECT_FALSE(SomeNoteSays(advice, "nccl#1034"));
}

TEST(NcclAdviceTest, ALineHasNoRing) {
  const NcclAdvice advice = AdviseNccl(WiringIn("mesh(4)"));
  EXPECT_EQ(ValueOf(advice, "NCCL_ALGO"), "not set");
  EXPECT_TRUE(SomeNoteSays(advice, "no ring of cables"));
}

TEST(NcclAdviceTest, RailsAndSwitches) {
  EXPECT_EQ(ValueOf(AdviseNccl(WiringIn("dgx_h100(2)")), "NCCL_CROSS_NIC"), "0");
  EXPECT_TRUE(AdviseNccl(WiringIn("switch(4)")).settings.empty());
}

// By hand, channels 0-1-3-2 and 1-0-2-3: every NIC takes half of what passes a pair of neighbours,
// every hop is two links.
TEST(RingEstimateTest, TwoBoxesOfTwoOnRails) {
  const Topology topology = Parse("cluster(boxes=2,gpus=2,nvswitch=4GB/s,nic=1GB/s,alpha=1us)");
  const RingEstimate estimate = EstimateRing(topology, FindBoxes(topology));
  EXPECT_EQ(estimate.channels, 2);
  EXPECT_EQ(estimate.hop_ps, 2'000'000);
  EXPECT_EQ(estimate.seconds_per_byte, Rational(1, 2'000'000'000));
  constexpr int64_t kFourGB = 4'000'000'000;
  const Rational gather = Rational(3, 2) + Rational(6, 1'000'000);
  EXPECT_EQ(estimate.Seconds(Kind::kAllGather, 4, kFourGB), gather);
  EXPECT_EQ(estimate.Seconds(Kind::kAllReduce, 4, kFourGB), gather * Rational(2));
  EXPECT_EQ(estimate.Seconds(Kind::kBroadcast, 4, kFourGB), Rational(2) + Rational(6, 1'000'000));
  EXPECT_EQ(estimate.Seconds(Kind::kAllToAll, 4, kFourGB), std::nullopt);
}

// A star: every rank sends to its neighbour over its own cable, all of it.
TEST(RingEstimateTest, AStar) {
  const Topology topology = Parse("switch(5,bw=2GB/s,alpha=1us)");
  const RingEstimate estimate = EstimateRing(topology, FindBoxes(topology));
  EXPECT_EQ(estimate.channels, 1);
  EXPECT_EQ(estimate.hop_ps, 2'000'000);
  EXPECT_EQ(estimate.seconds_per_byte, Rational(1, 2'000'000'000));
}

}  // namespace
}  // namespace tutti

// Traffic, cuts and chains: by hand, and against the simulator.
#include "tutti/advise/explanation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "advise_support.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

constexpr int64_t kFourGB = 4'000'000'000;

// By hand, ring(4): three hops of half a shard (M/8) in either direction.
TEST(TrafficTest, EveryLinkOfARingCarriesTheSame) {
  const Topology topology = Parse("ring(4,bw=1GB/s)");
  const std::vector<LinkTraffic> traffic =
      TrafficOf(topology, MustMake(topology, Kind::kAllGather, "ring"));
  ASSERT_EQ(traffic.size(), 8U);
  for (const LinkTraffic& row : traffic) {
    EXPECT_EQ(row.share, Rational(3, 8));
    EXPECT_EQ(row.messages, 3);
    EXPECT_EQ(row.seconds_per_byte, Rational(3, 8'000'000'000));
  }
  EXPECT_EQ(CountAsBusy(traffic), 8);
  EXPECT_EQ(BusiestOf(traffic).link, LinkId{0});
}

// The cut of three of four ranks: three shards of M/4 over two links, and the ring sends no more.
TEST(TrafficTest, ARingMeetsItsCut) {
  const Topology topology = Parse("ring(4,bw=1GB/s)");
  const Schedule schedule = MustMake(topology, Kind::kAllGather, "ring");
  const Bounds bounds = *ComputeBounds(topology, schedule.collective);
  ASSERT_TRUE(bounds.cut);
  const CutTraffic over =
      TrafficOver(topology, schedule, *bounds.cut, TrafficOf(topology, schedule));
  EXPECT_EQ(over.needed, Rational(3, 4));
  EXPECT_EQ(over.sent, Rational(3, 4));
  EXPECT_EQ(over.links.size(), 2U);
}

// Over one direction only, one of the two links out of the three ranks carries all.
TEST(TrafficTest, AUniringLeavesHalfOfTheCutIdle) {
  const Topology topology = Parse("ring(4,bw=1GB/s)");
  const Schedule schedule = MustMake(topology, Kind::kAllGather, "uniring");
  const std::vector<LinkTraffic> traffic = TrafficOf(topology, schedule);
  EXPECT_EQ(BusiestOf(traffic).share, Rational(3, 4));
  EXPECT_EQ(CountAsBusy(traffic), 4);
}

// Two boxes of two on rails: half of M comes in over two NICs, as the cut says.
TEST(TrafficTest, TwoBoxesOnRailsMeetTheirCut) {
  const Topology topology = Parse("cluster(boxes=2,gpus=2,nvswitch=4GB/s,nic=1GB/s)");
  const Schedule schedule = MustMake(topology, Kind::kAllGather, "forest");
  const Bounds bounds = *ComputeBounds(topology, schedule.collective);
  ASSERT_TRUE(bounds.cut);
  EXPECT_EQ(bounds.seconds_per_byte, Rational(1, 4'000'000'000));
  const CutTraffic over =
      TrafficOver(topology, schedule, *bounds.cut, TrafficOf(topology, schedule));
  EXPECT_EQ(over.needed, Rational(1, 2));
  EXPECT_EQ(over.sent, Rational(1, 2));
}

// By hand: three steps of 1 us and M/4 at 1 GB/s, the last behind the two before.
TEST(ChainTest, UniringIsOneChainRoundTheRing) {
  const Topology topology = Parse("ring(4,bw=1GB/s,alpha=1us)");
  const Schedule schedule = MustMake(topology, Kind::kAllGather, "uniring");
  for (const StepMode mode : {StepMode::kBarrier, StepMode::kEager}) {
    const Result<CriticalChain> chain =
        FindCriticalChain(topology, schedule, {.size_bytes = kFourGB, .step_mode = mode});
    ASSERT_TRUE(chain.has_value()) << chain.error().message;
    EXPECT_NEAR(chain->time_s, 3.000003, 1e-9);
    EXPECT_NEAR(chain->latency_s, 3e-6, 1e-12);
    EXPECT_NEAR(chain->bandwidth_s, 3.0, 1e-9);
    EXPECT_EQ(chain->waiting_s, 0);
    ASSERT_EQ(chain->messages.size(), 3U);
    EXPECT_EQ(chain->messages[0].start_s, 0);
    EXPECT_FALSE(chain->messages[2].waited_for_link);
  }
}

// By hand: one link of one GB/s after one of two; the chunk waits for the slow one.
TEST(ChainTest, NamesTheLinkThatHoldsAllUp) {
  Topology::Builder builder(3);
  builder.AddDuplex(NodeId{0}, NodeId{1}, {.bandwidth = 2'000'000'000, .alpha_ps = 1'000'000});
  builder.AddDuplex(NodeId{1}, NodeId{2}, {.bandwidth = 1'000'000'000, .alpha_ps = 1'000'000});
  const Topology topology = *std::move(builder).Build();
  Schedule schedule{.collective = *Collective::Make(Kind::kBroadcast, 3)};
  schedule.topology_fingerprint = topology.Fingerprint();
  schedule.num_steps = 2;
  for (LinkId link : topology.Links())
    if (const int32_t tail = topology.tail(link).value; tail < topology.head(link).value)
      schedule.transfers.push_back({ShardId{0}, link, 0, 1, tail, TransferOp::kCopy});
  SortBySteps(schedule);
  ASSERT_TRUE(Verify(topology, schedule.collective, schedule).verified());
  const Result<CriticalChain> chain =
      FindCriticalChain(topology, schedule, {.size_bytes = kFourGB});
  ASSERT_TRUE(chain.has_value()) << chain.error().message;
  EXPECT_EQ(topology.tail(chain->longest_on), NodeId{1});
  EXPECT_EQ(topology.head(chain->longest_on), NodeId{2});
  EXPECT_NEAR(chain->longest_on_s, 4.000001, 1e-9);
}

TEST(ChainTest, IsEmptyWhereNothingIsSent) {
  const Topology topology = Parse("ring(3)");
  Schedule nothing{.collective = *Collective::Make(Kind::kAllGather, 3)};
  nothing.topology_fingerprint = topology.Fingerprint();
  const Result<CriticalChain> chain = FindCriticalChain(topology, nothing, {.size_bytes = 1});
  ASSERT_TRUE(chain.has_value());
  EXPECT_TRUE(chain->messages.empty());
  EXPECT_EQ(chain->time_s, 0);
}

TEST(ChainTest, RefusesWhatTheSimulatorRefuses) {
  const Topology topology = Parse("ring(3)"), other = Parse("ring(4)");
  const Schedule schedule = MustMake(topology, Kind::kAllGather, "ring");
  EXPECT_FALSE(FindCriticalChain(other, schedule, {.size_bytes = 1}).has_value());
  EXPECT_FALSE(FindCriticalChain(topology, schedule, {.size_bytes = 0}).has_value());
}

// --- Properties ----------------------------------------------------------------------------------

struct Case {
  const char* expression;
  Kind kind;
  const char* algorithm;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"ring(6)", Kind::kAllReduce, "ring"},
      {"torus(3,4)", Kind::kAllGather, "bfb"},
      {"torus(3,3)", Kind::kAllToAll, "tsmcf"},
      {"mesh(3,4,bw=[1,2]GB/s)", Kind::kAllGather, "ten"},
      {"dgx1", Kind::kAllReduce, "ring"},
      {"dgx_h100(2)", Kind::kAllReduce, "forest"},
      {"hypercube(3)", Kind::kReduceScatter, "rhd"},
      {"random_regular(3,10,seed=5)", Kind::kAllGather, "ten"},
      {"switch(5)", Kind::kBroadcast, "forest"},
  };
  return cases;
}

TEST(ChainProperty, PartsAddUpToTheTimeAndMessagesFollowEachOther) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(std::string(one.expression) + " " + one.algorithm);
    const Topology topology = Parse(one.expression);
    const Schedule schedule = MustMake(topology, one.kind, one.algorithm);
    for (const int64_t size : {int64_t{1} << 10, int64_t{1} << 24, int64_t{1} << 30})
      for (const StepMode mode : {StepMode::kBarrier, StepMode::kEager})
        for (const LinkModel model : {LinkModel::kHeld, LinkModel::kPipelined}) {
          const SimOptions options{.size_bytes = size, .link_model = model, .step_mode = mode};
          const Result<CriticalChain> chain = FindCriticalChain(topology, schedule, options);
          ASSERT_TRUE(chain.has_value()) << chain.error().message;
          const double time = Simulate(topology, schedule, options)->time_s;
          EXPECT_DOUBLE_EQ(chain->time_s, time);
          EXPECT_NEAR(chain->latency_s + chain->bandwidth_s + chain->waiting_s, time, time * 1e-6);
          EXPECT_GE(chain->waiting_s, 0);
          ASSERT_FALSE(chain->messages.empty());
          EXPECT_NEAR(chain->messages.back().end_s, time, time * 1e-9);
          for (size_t i = 1; i < chain->messages.size(); ++i)
            EXPECT_LE(chain->messages[i - 1].end_s, chain->messages[i].start_s * (1 + 1e-6));
        }
  }
}

TEST(TrafficProperty, IsWhatTheSimulatorCarriesAndTakesNoLongerThanTheRun) {
  constexpr int64_t kSize = 1 << 26;
  for (const Case& one : Cases()) {
    SCOPED_TRACE(std::string(one.expression) + " " + one.algorithm);
    const Topology topology = Parse(one.expression);
    const Schedule schedule = MustMake(topology, one.kind, one.algorithm);
    const std::vector<LinkTraffic> traffic = TrafficOf(topology, schedule);
    const Result<SimReport> report = Simulate(topology, schedule, {.size_bytes = kSize});
    ASSERT_TRUE(report.has_value());
    int64_t messages = 0;
    for (const LinkTraffic& row : traffic) {
      const double bytes = (row.share * Rational(kSize)).ToDouble();
      EXPECT_NEAR(bytes, report->link_bytes[row.link.index()], 1 + bytes * 1e-9);
      messages += row.messages;
    }
    EXPECT_EQ(messages, report->messages);
    EXPECT_LE((BusiestOf(traffic).seconds_per_byte * Rational(kSize)).ToDouble(),
              report->time_s * (1 + 1e-9));
    const Result<Bounds> bounds = ComputeBounds(topology, schedule.collective);
    ASSERT_TRUE(bounds.has_value());
    if (!bounds->cut) continue;
    const CutTraffic over = TrafficOver(topology, schedule, *bounds->cut, traffic);
    EXPECT_GE(over.sent, over.needed);  // what must leave does
  }
}

TEST(StepTimesProperty, AddUpToTheAnalyticCost) {
  constexpr int64_t kSize = 1 << 20;
  for (const Case& one : Cases()) {
    const Topology topology = Parse(one.expression);
    const Schedule schedule = MustMake(topology, one.kind, one.algorithm);
    if (schedule.kind != ScheduleKind::kStep) continue;
    SCOPED_TRACE(one.expression);
    Rational total;
    for (const StepTime& step : StepTimes(topology, schedule, kSize)) total += step.seconds;
    EXPECT_EQ(total, AnalyticSeconds(topology, schedule, kSize));
  }
}

}  // namespace
}  // namespace tutti

#include "tutti/sched/cost.h"

#include <gtest/gtest.h>

#include <map>

#include "sched_testing.h"

namespace tutti {
namespace {

TEST(CostTest, FigureOneIsTwoStepsAndThreeQuarters) {
  const Topology topology = K22();
  const Schedule schedule = K22AllGather(topology);
  const StepCost cost = AnalyticCost(topology, schedule);
  EXPECT_EQ(cost.tl, 2);
  EXPECT_EQ(cost.tb, Rational(3, 4));
  EXPECT_EQ(cost.alpha_s, Rational(1, 1'000'000));
  // 2 alpha + 3/4 M / B for B = 100 GB/s.
  EXPECT_EQ(AnalyticSeconds(topology, schedule, 400'000'000),
            Rational(1, 1'000'000) + Rational(3, 1000));
}

TEST(CostTest, RingTakesOneStepLessThanRanksAndIsBandwidthOptimal) {
  for (int32_t n : {2, 3, 4, 7, 16, 33}) {
    const Topology topology = Ring(n, false);
    const StepCost cost = AnalyticCost(topology, RingAllGather(topology));
    EXPECT_EQ(cost.tl, n - 1);
    EXPECT_EQ(cost.tb, Rational(n - 1, n));
    EXPECT_EQ(cost.alpha_s, Rational(n - 1, 2'000'000));
  }
}

// Rank 1 passes on what rank 0 sends to rank 2: in and out of its host cross 3 units a step.
TEST(CostTest, HostLimitsCountWhatARankTakesInAndWhatItSendsOut) {
  Topology::Builder builder(3);
  for (const auto& [tail, head] : {std::pair(0, 1), std::pair(1, 2), std::pair(2, 0)})
    for (int parallel = 0; parallel < 2; ++parallel)
      builder.AddLink(Node(tail), Node(head), {.bandwidth = 4, .alpha_ps = 5});
  builder.SetHostBandwidth(Node(1), 3);
  const Topology topology = Must(std::move(builder).Build());
  Schedule schedule = EmptySchedule(topology, CollectiveKind::kAllToAll);
  schedule.num_steps = 2;
  schedule.units_per_shard = 3;
  schedule.transfers = {{ShardId{2}, LinkId{0}, 0, 2, 0, TransferOp::kCopy},
                        {ShardId{2}, LinkId{1}, 2, 3, 0, TransferOp::kCopy},
                        {ShardId{2}, LinkId{2}, 0, 1, 1, TransferOp::kCopy},
                        {ShardId{2}, LinkId{3}, 1, 3, 1, TransferOp::kCopy},
                        {ShardId{6}, LinkId{4}, 0, 1, 1, TransferOp::kCopy}};
  const StepCost cost = AnalyticCost(topology, schedule);
  EXPECT_EQ(cost.tl, 2);
  // Each step takes a shard, a third of M, through 3 B/s; B is 8 B/s.
  EXPECT_EQ(cost.tb, Rational(2) * Rational(1, 3) * Rational(8, 3));
  EXPECT_EQ(cost.alpha_s, Rational(10, 1'000'000'000'000));
  EXPECT_EQ(AnalyticSeconds(topology, schedule, 27), Rational(6) + cost.alpha_s);
}

TEST(CostTest, EmptyStepsAndWeightlessShardsCostNothing) {
  const Topology topology = Ring(3, false);
  Collective::Options options;
  options.demand = {0, 5, 0, 0, 0, 0, 0, 0, 0};
  Schedule schedule{Must(Collective::Make(CollectiveKind::kAllToAllV, 3, options))};
  schedule.num_steps = 5;
  schedule.transfers = {{ShardId{1}, LinkId{0}, 0, 1, 1, TransferOp::kCopy},
                        {ShardId{2}, LinkId{1}, 0, 1, 3, TransferOp::kCopy}};
  const StepCost cost = AnalyticCost(topology, schedule);
  EXPECT_EQ(cost.tl, 1);
  EXPECT_EQ(cost.tb, Rational(1));  // M is the 5 bytes that rank 0 sends
  schedule.transfers.clear();
  EXPECT_EQ(AnalyticCost(topology, schedule).tl, 0);
  EXPECT_EQ(AnalyticSeconds(topology, schedule, 1 << 20), Rational(0));
}

TEST(CostTest, TheSlowestLinkOfAStepDecidesAndNotTheFullest) {
  Topology::Builder builder(2);
  builder.AddLink(Node(0), Node(1), {.bandwidth = 3, .alpha_ps = 7});
  builder.AddLink(Node(0), Node(1), {.bandwidth = 5, .alpha_ps = 1});
  builder.AddLink(Node(1), Node(0), {.bandwidth = 1, .alpha_ps = 0});
  const Topology topology = Must(std::move(builder).Build());
  Schedule schedule = EmptySchedule(topology, CollectiveKind::kAllGather);
  schedule.num_steps = 1;
  schedule.units_per_shard = 8;
  schedule.transfers = {{ShardId{0}, LinkId{0}, 0, 3, 0, TransferOp::kCopy},
                        {ShardId{0}, LinkId{1}, 3, 8, 0, TransferOp::kCopy}};
  // 3/3 against 5/5 units: equal in bandwidth; [B] is 8.
  EXPECT_EQ(AnalyticCost(topology, schedule).tb, Rational(8, 16));
  EXPECT_EQ(AnalyticCost(topology, schedule).alpha_s, Rational(7, 1'000'000'000'000));
  schedule.transfers[0].end = 4;
  schedule.transfers[1].begin = 4;
  EXPECT_EQ(AnalyticCost(topology, schedule).tb, Rational(8, 16) * Rational(4, 3));
  // In seconds alpha and bandwidth of one link belong together.
  EXPECT_EQ(AnalyticSeconds(topology, schedule, 16),
            Rational(7, 1'000'000'000'000) + Rational(4, 3));
}

TEST(CostTest, HugeWeightsStayExact) {
  const int64_t huge = (int64_t{1} << 61) + 1;
  const Topology topology = Ring(2, false, {.bandwidth = (int64_t{1} << 50) - 3, .alpha_ps = 0});
  Collective::Options options;
  options.demand = {0, huge, huge - 2, 0};
  Schedule schedule{Must(Collective::Make(CollectiveKind::kAllToAllV, 2, options))};
  schedule.units_per_shard = (int32_t{1} << 30) + 7;
  schedule.num_steps = 1;
  schedule.transfers = {
      {ShardId{1}, LinkId{0}, 0, schedule.units_per_shard - 1, 0, TransferOp::kCopy},
      {ShardId{2}, LinkId{1}, 0, schedule.units_per_shard, 0, TransferOp::kCopy}};
  EXPECT_EQ(AnalyticCost(topology, schedule).tb,
            std::max(Rational(schedule.units_per_shard - 1, schedule.units_per_shard),
                     Rational(huge - 2, huge)));
}

// The formula of cost.h, word by word.
struct Oracle {
  StepCost cost;
  Rational seconds;
};
Oracle ByTheFormula(const Topology& topology, const Schedule& schedule, int64_t size) {
  std::map<int32_t, std::map<int32_t, Rational>> share;  // of M, by step and link
  for (const Transfer& transfer : schedule.transfers) {
    const Rational part = schedule.collective.ShardBytes(transfer.shard, 1) *
                          Rational(transfer.units(), schedule.units_per_shard);
    if (!part.is_zero()) share[transfer.step][transfer.link.value] += part;
  }
  Oracle oracle;
  for (const auto& [step, links] : share) {
    ++oracle.cost.tl;
    Rational tb, alpha, seconds;
    for (const auto& [id, part] : links) {
      const LinkSpec& spec = topology.spec(LinkId{id});
      const Rational link_alpha(spec.alpha_ps, 1'000'000'000'000);
      tb = std::max(tb, part * topology.max_in_bandwidth() / Rational(spec.bandwidth));
      alpha = std::max(alpha, link_alpha);
      seconds = std::max(seconds, link_alpha + part * Rational(size) / Rational(spec.bandwidth));
    }
    oracle.cost.tb += tb;
    oracle.cost.alpha_s += alpha;
    oracle.seconds += seconds;
  }
  return oracle;
}

TEST(CostProperty, EqualsTheFormulaOnRandomSchedules) {
  int checked = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomTopology(random);
    const Schedule schedule = RandomSchedule(random, topology, 60);
    if (schedule.kind != ScheduleKind::kStep) continue;
    ++checked;
    const Oracle oracle = ByTheFormula(topology, schedule, 1'000'003);
    const StepCost cost = AnalyticCost(topology, schedule);
    EXPECT_EQ(cost.tl, oracle.cost.tl);
    EXPECT_EQ(cost.tb, oracle.cost.tb) << cost.tb.ToString();
    EXPECT_EQ(cost.alpha_s, oracle.cost.alpha_s);
    EXPECT_EQ(AnalyticSeconds(topology, schedule, 1'000'003), oracle.seconds);
  }
  EXPECT_GT(checked, 50);
}

TEST(CostProperty, OnAHomogeneousNetworkSecondsAreAlphaPlusTb) {
  for (int32_t n = 2; n < 12; ++n) {
    const Topology topology = Ring(n, true, {.bandwidth = 7'000'000'001, .alpha_ps = 123});
    const Schedule schedule = RingAllGather(topology);
    const StepCost cost = AnalyticCost(topology, schedule);
    EXPECT_EQ(AnalyticSeconds(topology, schedule, 1 << 20),
              cost.alpha_s + cost.tb * Rational(1 << 20) / Rational(topology.max_in_bandwidth()));
  }
}

}  // namespace
}  // namespace tutti

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tacos/messages.h"
#include "tacos/tacos.h"
#include "tutti/base/cancel.h"
#include "tutti/graph/distance.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

Schedule MustMake(const Topology& topology, CollectiveKind kind, std::string_view algorithm) {
  const Result<Schedule> schedule = RunSynthesizer(
      **FindSynthesizer(algorithm), topology, *Collective::Make(kind, topology.num_ranks()), {});
  if (!schedule) {
    ADD_FAILURE() << schedule.error().message;
    return {*Collective::Make(kind, topology.num_ranks())};
  }
  return *schedule;
}

LinkId LinkBetween(const Topology& topology, int32_t from, int32_t to) {
  for (LinkId link : topology.OutLinks(NodeId{from}))
    if (topology.head(link).value == to) return link;
  ADD_FAILURE() << "no link " << from << " > " << to;
  return LinkId{0};
}

// Three ranks in a line, all-gather, all pairs: rank 0 sends to 2 last, and rank 1 forwards that.
TEST(MessagesTest, MessagesQueueAtLinksAndAreForwardedWhole) {
  const Topology line = *ParseTopology("mesh(3,bw=1GB/s,alpha=1us)");
  const Topology pairs = *ParseTopology("complete(3)");
  Schedule schedule{.collective = *Collective::Make(CollectiveKind::kAllGather, 3)};
  schedule.num_steps = 1;
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 0), std::pair(1, 2),
                                 std::pair(2, 1), std::pair(2, 0)})
    schedule.transfers.push_back(
        {.shard = ShardId{from}, .link = LinkBetween(pairs, from, to), .begin = 0, .end = 1});
  // A shard takes 1 us + 3000 bytes / (1 GB/s) = 4 us.
  const Result<SimReport> report =
      tacos::SimulateMessages(line, {.topology = pairs, .schedule = schedule},
                              {.size_bytes = 9000, .record_messages = true});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  // 0 > 1 is taken twice, then 1 > 2 by what came second.
  EXPECT_DOUBLE_EQ(report->time_s, 12e-6);
  EXPECT_EQ(report->messages, 6);
  EXPECT_EQ(report->trace.size(), 8U);  // two of the six go two hops
  EXPECT_DOUBLE_EQ(report->link_bytes[LinkBetween(line, 0, 1).index()], 6000);
  EXPECT_DOUBLE_EQ(report->link_busy_s[LinkBetween(line, 1, 2).index()], 8e-6);
  EXPECT_DOUBLE_EQ(report->algbw, 9000 / 12e-6);
  const SimMessage& last = report->trace.back();
  EXPECT_DOUBLE_EQ(last.start_s, 8e-6);
  EXPECT_DOUBLE_EQ(last.arrive_s, 12e-6);
}

// Pipelined, alpha is on the way and keeps no link.
TEST(MessagesTest, PipelinedLinksTakeTheNextMessageWhileOneIsOnItsWay) {
  const Topology line = *ParseTopology("mesh(3,bw=1GB/s,alpha=1us)");
  const Topology pairs = *ParseTopology("complete(3)");
  Schedule schedule{.collective = *Collective::Make(CollectiveKind::kAllGather, 3)};
  schedule.num_steps = 1;
  for (int32_t to : {1, 2})
    schedule.transfers.push_back(
        {.shard = ShardId{0}, .link = LinkBetween(pairs, 0, to), .begin = 0, .end = 1});
  const Result<SimReport> report =
      tacos::SimulateMessages(line, {.topology = pairs, .schedule = schedule},
                              {.size_bytes = 9000, .link_model = LinkModel::kPipelined});
  ASSERT_TRUE(report.has_value());
  // The second leaves after 3 us, and goes two hops of 1 + 3 us.
  EXPECT_DOUBLE_EQ(report->time_s, 11e-6);
  EXPECT_DOUBLE_EQ(report->link_busy_s[LinkBetween(line, 0, 1).index()], 6e-6);
}

// A ring through the ranks in another order.
TEST(MessagesTest, RanksStandWhereTheyAreToldTo) {
  const Topology line = *ParseTopology("mesh(4,bw=1GB/s,alpha=0)");
  const Topology ring = *ParseTopology("uniring(1,4)");
  const Schedule schedule = MustMake(ring, CollectiveKind::kAllGather, "uniring");
  const std::vector<NodeId> place = {NodeId{0}, NodeId{2}, NodeId{3}, NodeId{1}};
  const auto carried = [&](std::span<const NodeId> at) {
    const Result<SimReport> report = tacos::SimulateMessages(
        line, {.topology = ring, .schedule = schedule, .place = at}, {.size_bytes = 4000});
    return report ? report->link_bytes[LinkBetween(line, 2, 3).index()] +
                        report->link_bytes[LinkBetween(line, 1, 0).index()]
                  : -1;
  };
  // 0 > 1 > 2 > 3 > 0, or 0 > 2 > 3 > 1 > 0: three shards for each edge over either link.
  EXPECT_DOUBLE_EQ(carried({}), 6000);
  EXPECT_DOUBLE_EQ(carried(place), 6000);
  EXPECT_EQ(
      tacos::FirstDimensionFastest(std::array<int32_t, 2>{2, 3}),
      (std::vector<NodeId>{NodeId{0}, NodeId{3}, NodeId{1}, NodeId{4}, NodeId{2}, NodeId{5}}));
}

// Of a step, what goes to one rank is one message: it pays alpha once.
TEST(MessagesTest, OneMessageAStepAndPair) {
  const Topology pair = *ParseTopology("complete(4,bw=1GB/s,alpha=1us)");
  const Schedule schedule = MustMake(pair, CollectiveKind::kAllGather, "rhd");
  const Result<SimReport> report =
      tacos::SimulateMessages(pair, {.topology = pair, .schedule = schedule}, {.size_bytes = 4000});
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->messages, 8);
  EXPECT_DOUBLE_EQ(report->time_s, (1 + 1 + 1 + 2) * 1e-6);
}

// On the network it was made for, a schedule takes what the simulator of schedules says.
TEST(MessagesTest, OnTheirOwnNetworkTheyTakeTheTimeOfTheSchedule) {
  for (const auto& [expression, algorithm] :
       {std::pair("ring(9)", "ring"), std::pair("uniring(1,7)", "uniring"),
        std::pair("complete(8)", "rhd"), std::pair("complete(6)", "direct")}) {
    const Topology topology = *ParseTopology(expression);
    const Schedule schedule = MustMake(topology, CollectiveKind::kAllReduce, algorithm);
    const int64_t size = 1'000'000;
    const Result<SimReport> expected =
        Simulate(topology, schedule, {.size_bytes = size, .step_mode = StepMode::kEager});
    const Result<SimReport> report = tacos::SimulateMessages(
        topology, {.topology = topology, .schedule = schedule}, {.size_bytes = size});
    ASSERT_TRUE(expected.has_value() && report.has_value());
    EXPECT_NEAR(report->time_s, expected->time_s, 1e-9) << expression;
    for (LinkId link : topology.Links())
      EXPECT_NEAR(report->link_bytes[link.index()], expected->link_bytes[link.index()], 1e-6);
  }
}

// Every message goes a shortest way: all links together carry distance times bytes.
TEST(MessagesTest, WaysAreShortest) {
  for (const char* expression :
       {"ring(12)", "mesh(3,4)", "mesh(2,2,3)", "unwind(switch(12),degree=2)", "torus(4,3)"}) {
    const Topology topology = *ParseTopology(expression);
    const Topology pairs = *ParseTopology("complete(12)");
    const Schedule schedule = MustMake(pairs, CollectiveKind::kAllReduce, "direct");
    const Result<SimReport> report = tacos::SimulateMessages(
        topology, {.topology = pairs, .schedule = schedule}, {.size_bytes = 12'000});
    ASSERT_TRUE(report.has_value());
    int64_t hops = 0;
    for (NodeId rank : topology.Ranks())
      for (int32_t distance : DistancesFrom(topology.graph(), rank)) hops += distance;
    const double carried =
        std::accumulate(report->link_bytes.begin(), report->link_bytes.end(), 0.0);
    EXPECT_NEAR(carried, 2.0 * 1000 * static_cast<double>(hops), 1e-3) << expression;
  }
}

TEST(MessagesTest, SwitchesForward) {
  const Topology star = *ParseTopology("switch(4,bw=1GB/s,alpha=0)");
  const Topology pairs = *ParseTopology("complete(4)");
  const Schedule schedule = MustMake(pairs, CollectiveKind::kAllGather, "direct");
  const Result<SimReport> report = tacos::SimulateMessages(
      star, {.topology = pairs, .schedule = schedule}, {.size_bytes = 4000});
  ASSERT_TRUE(report.has_value());
  // Three shards up one link, and the last of them down another.
  EXPECT_GE(report->time_s, 4e-6);
  for (double bytes : report->link_bytes) EXPECT_DOUBLE_EQ(bytes, 3000);
}

TEST(MessagesTest, CanBeInterrupted) {
  const Topology pair = *ParseTopology("complete(4)");
  const Schedule schedule = MustMake(pair, CollectiveKind::kAllGather, "direct");
  RequestCancel();
  EXPECT_EQ(
      tacos::SimulateMessages(pair, {.topology = pair, .schedule = schedule}, {.size_bytes = 4000})
          .error()
          .code,
      ErrorCode::kCancelled);
  ResetCancel();
}

}  // namespace
}  // namespace tutti

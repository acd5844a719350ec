#include "tutti/sim/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"
#include "tutti/verify/verifier.h"
#include "unit/sim/random_schedules.h"
#include "unit/verify/hand_schedules.h"

namespace tutti {
namespace {

using hand::FindLink;
using testing::HasSubstr;

constexpr LinkSpec kSlow{1'000'000'000, 1'000'000};  // 1 GB/s, 1 us

SimReport MustSimulate(const Topology& topology, const Schedule& schedule, SimOptions options) {
  options.record_messages = true;
  Result<SimReport> report = Simulate(topology, schedule, options);
  EXPECT_TRUE(report.has_value()) << report.error().message;
  return *std::move(report);
}

// --- Worked example: a chain 0 - 1 - 2 passes on a quarter and three quarters of 4000 bytes -----

Topology Chain() {
  Topology::Builder builder(3);
  builder.AddDuplex(NodeId{0}, NodeId{1}, kSlow);
  builder.AddDuplex(NodeId{1}, NodeId{2}, kSlow);
  return hand::MustBuild(std::move(builder));
}

Schedule ChainBroadcast(const Topology& chain) {
  Schedule schedule = hand::Empty(chain, hand::MustMake(CollectiveKind::kBroadcast, 3), 3, 4);
  schedule.transfers = {{ShardId{0}, FindLink(chain, 0, 1), 0, 1, 0},
                        {ShardId{0}, FindLink(chain, 0, 1), 1, 4, 1},
                        {ShardId{0}, FindLink(chain, 1, 2), 0, 1, 1},
                        {ShardId{0}, FindLink(chain, 1, 2), 1, 4, 2}};
  return schedule;
}

// Start, free and arrival of each message in microseconds.
std::vector<std::tuple<int, int, int>> Microseconds(const SimReport& report) {
  std::vector<std::tuple<int, int, int>> times;
  for (const SimMessage& message : report.trace)
    times.emplace_back(static_cast<int>(message.start_s * 1e6 + 0.5),
                       static_cast<int>(message.free_s * 1e6 + 0.5),
                       static_cast<int>(message.arrive_s * 1e6 + 0.5));
  return times;
}
using Times = std::vector<std::tuple<int, int, int>>;

TEST(SimulatorTest, ChainByHand) {
  const Topology chain = Chain();
  const Schedule schedule = ChainBroadcast(chain);
  ASSERT_TRUE(Verify(chain, schedule.collective, schedule).verified());

  SimReport report = MustSimulate(chain, schedule, {4000, LinkModel::kHeld, StepMode::kBarrier});
  EXPECT_EQ(Microseconds(report), (Times{{0, 2, 2}, {2, 6, 6}, {2, 4, 4}, {6, 10, 10}}));
  EXPECT_DOUBLE_EQ(report.time_s, 10e-6);
  EXPECT_DOUBLE_EQ(report.algbw, 4e8);
  EXPECT_DOUBLE_EQ(report.busbw, 4e8);
  EXPECT_EQ(report.messages, 4);
  EXPECT_EQ(report.max_in_flight, 2);
  EXPECT_DOUBLE_EQ(report.link_busy_s[0], 6e-6);
  EXPECT_DOUBLE_EQ(report.link_bytes[0], 4000);
  EXPECT_EQ(report.link_bytes[static_cast<size_t>(FindLink(chain, 2, 1).value)], 0);

  report = MustSimulate(chain, schedule, {4000, LinkModel::kPipelined, StepMode::kBarrier});
  EXPECT_EQ(Microseconds(report), (Times{{0, 1, 2}, {2, 5, 6}, {2, 3, 4}, {6, 9, 10}}));
  EXPECT_DOUBLE_EQ(report.link_busy_s[0], 4e-6);

  report = MustSimulate(chain, schedule, {4000, LinkModel::kHeld, StepMode::kEager});
  EXPECT_EQ(Microseconds(report), (Times{{0, 2, 2}, {2, 6, 6}, {2, 4, 4}, {6, 10, 10}}));

  // The second part leaves while the first is on its way.
  report = MustSimulate(chain, schedule, {4000, LinkModel::kPipelined, StepMode::kEager});
  EXPECT_EQ(Microseconds(report), (Times{{0, 1, 2}, {1, 4, 5}, {2, 3, 4}, {5, 8, 9}}));
  EXPECT_EQ(report.max_in_flight, 2);
}

// Half a GB/s into and out of rank 1: 1 us + 1000 B or 3000 B in 2 or 6 us for each of three steps.
TEST(SimulatorTest, HostLimitsLengthenStepsWithABarrier) {
  Topology::Builder builder(3);
  builder.AddDuplex(NodeId{0}, NodeId{1}, kSlow);
  builder.AddDuplex(NodeId{1}, NodeId{2}, kSlow);
  builder.SetHostBandwidth(NodeId{1}, 500'000'000);
  const Topology chain = hand::MustBuild(std::move(builder));
  const Schedule schedule = ChainBroadcast(chain);
  for (LinkModel model : {LinkModel::kHeld, LinkModel::kPipelined}) {
    const SimReport report =
        MustSimulate(chain, schedule, {.size_bytes = 4000, .link_model = model});
    EXPECT_NEAR(report.time_s, 17e-6, 1e-15);
    EXPECT_NEAR(report.time_s, AnalyticSeconds(chain, schedule, 4000).ToDouble(), 1e-15);
  }
}

// The same chain, eager. The first part passes the host of rank 1 from 0 to 2 us and is there at 3;
// with held links its batch lets go then, otherwise at 2. The second part follows into the host in
// 6 us, while the first part leaves it (rank 1 has one limit a direction).
TEST(SimulatorTest, EagerKeepsHostLimits) {
  Topology::Builder builder(3);
  builder.AddDuplex(NodeId{0}, NodeId{1}, kSlow);
  builder.AddDuplex(NodeId{1}, NodeId{2}, kSlow);
  builder.SetHostBandwidth(NodeId{1}, 500'000'000);
  const Topology chain = hand::MustBuild(std::move(builder));
  const Schedule schedule = ChainBroadcast(chain);
  SimReport report = MustSimulate(chain, schedule, {4000, LinkModel::kHeld, StepMode::kEager});
  EXPECT_EQ(Microseconds(report), (Times{{0, 2, 3}, {3, 7, 10}, {3, 5, 6}, {10, 14, 17}}));
  report = MustSimulate(chain, schedule, {4000, LinkModel::kPipelined, StepMode::kEager});
  EXPECT_EQ(Microseconds(report), (Times{{0, 1, 3}, {2, 5, 9}, {3, 4, 6}, {9, 12, 16}}));
}

// Rank 0 of a star sends 1000 bytes over each of three links at once, through a host of the speed
// of one of them: one after the other. With the speed of all three the host is no limit.
TEST(SimulatorTest, MessagesOfAStepPassAHostOneAfterTheOther) {
  for (const auto& [limit, arrivals] : {std::pair(int64_t{1'000'000'000}, std::vector{2, 3, 4}),
                                        {int64_t{3'000'000'000}, std::vector{2, 2, 2}}}) {
    Topology::Builder builder(4);
    for (int32_t leaf = 1; leaf < 4; ++leaf) builder.AddDuplex(NodeId{0}, NodeId{leaf}, kSlow);
    builder.SetHostBandwidth(NodeId{0}, limit);
    const Topology star = hand::MustBuild(std::move(builder));
    Schedule schedule = hand::Empty(star, hand::MustMake(CollectiveKind::kScatter, 4), 1);
    for (int32_t leaf = 1; leaf < 4; ++leaf)
      schedule.transfers.push_back({ShardId{leaf}, FindLink(star, 0, leaf), 0, 1, 0});
    const SimReport report =
        MustSimulate(star, schedule, {4000, LinkModel::kHeld, StepMode::kEager});
    std::vector<int> arrived;
    for (const auto& [start, free, arrive] : Microseconds(report)) arrived.push_back(arrive);
    EXPECT_EQ(arrived, arrivals) << limit;
    EXPECT_NEAR(report.time_s, AnalyticSeconds(star, schedule, 4000).ToDouble(), 1e-15);
  }
}

TEST(SimulatorTest, RingAllGatherIsTheFormula) {
  for (int32_t n : {2, 3, 8, 33})
    for (LinkModel model : {LinkModel::kHeld, LinkModel::kPipelined})
      for (StepMode mode : {StepMode::kBarrier, StepMode::kEager}) {
        const Topology ring = hand::Ring(n, false, kSlow);
        const SimReport report =
            MustSimulate(ring, hand::RingAllGather(ring, false), {1'000'000, model, mode});
        const double formula = (n - 1) * (1e-6 + 1e6 / n / 1e9);
        EXPECT_NEAR(report.time_s, formula, 1e-12 * formula);
        EXPECT_NEAR(report.busbw, report.algbw * (n - 1) / n, 1);
        EXPECT_EQ(report.max_in_flight, n);
      }
}

TEST(SimulatorTest, OneMessageAtATimeFirstComeFirstServed) {
  // Two blocks leave rank 0 over one link; in the plan the second starts when the first is gone.
  const Topology chain = Chain();
  Schedule schedule = hand::Empty(chain, hand::MustMake(CollectiveKind::kScatter, 3), 0);
  schedule.kind = ScheduleKind::kTimed;
  schedule.size_bytes = 3000;
  schedule.transfers = {{ShardId{2}, FindLink(chain, 0, 1), 0, 1, 0},
                        {ShardId{1}, FindLink(chain, 0, 1), 0, 1, 0},
                        {ShardId{2}, FindLink(chain, 1, 2), 0, 1, 0}};
  schedule.start_ps = {0, 2'000'000, 2'000'000};
  ASSERT_TRUE(Verify(chain, schedule.collective, schedule).verified());
  EXPECT_EQ(Microseconds(MustSimulate(chain, schedule, {3000, LinkModel::kHeld})),
            (Times{{0, 2, 2}, {2, 4, 4}, {2, 4, 4}}));
  EXPECT_EQ(Microseconds(MustSimulate(chain, schedule, {9000, LinkModel::kHeld})),
            (Times{{0, 4, 4}, {4, 8, 8}, {4, 8, 8}}));
  EXPECT_EQ(Microseconds(MustSimulate(chain, schedule, {9000, LinkModel::kPipelined})),
            (Times{{0, 3, 4}, {3, 6, 7}, {4, 7, 8}}));
}

TEST(SimulatorTest, EagerWaitsUntilTheOldValueHasLeft) {
  // Ranks 0 and 1 exchange their values of shard 0. Rank 1's link is taken by shard 1 before, so
  // its value leaves late, and rank 0's must not be added to it earlier.
  const Topology chain = Chain();
  Schedule schedule = hand::Empty(chain, hand::MustMake(CollectiveKind::kAllReduce, 3), 3);
  schedule.transfers = {{ShardId{1}, FindLink(chain, 1, 0), 0, 1, 0, TransferOp::kReduce},
                        {ShardId{0}, FindLink(chain, 0, 1), 0, 1, 1, TransferOp::kReduce},
                        {ShardId{0}, FindLink(chain, 1, 0), 0, 1, 1, TransferOp::kReduce}};
  const SimReport report =
      MustSimulate(chain, schedule, {3000, LinkModel::kHeld, StepMode::kEager});
  EXPECT_EQ(Microseconds(report), (Times{{0, 2, 2}, {2, 4, 4}, {2, 4, 4}}));
}

TEST(SimulatorTest, NothingToDoTakesNoTime) {
  const Topology alone = hand::MustBuild(Topology::Builder(1));
  const Schedule schedule = hand::Empty(alone, hand::MustMake(CollectiveKind::kAllReduce, 1), 0);
  for (StepMode mode : {StepMode::kBarrier, StepMode::kEager}) {
    const SimReport report = MustSimulate(alone, schedule, {1, LinkModel::kHeld, mode});
    EXPECT_EQ(report.time_s, 0);
    EXPECT_EQ(report.algbw, 0);
    EXPECT_EQ(report.max_in_flight, 0);
    EXPECT_TRUE(UtilisationOverTime(report, 4).empty());
  }
}

// --- Wrong input: one row a rule ---------------------------------------------------------------

TEST(SimulatorTest, NamesWhatIsWrong) {
  struct Row {
    void (*spoil)(Schedule&);
    const char* message;
  };
  const std::vector<Row> rows{
      {[](Schedule& s) { s.topology_fingerprint = 1; }, "made for another topology than this one"},
      {[](Schedule& s) { s.units_per_shard = 0; }, "units_per_shard is at least 1, got 0"},
      {[](Schedule& s) { s.start_ps = {1}; }, "1 start times for 4 transfers"},
      {[](Schedule& s) { s.transfers[2].link = LinkId{4}; },
       "transfer 2: link 4 is outside [0, 4)"},
      {[](Schedule& s) { s.transfers[2].link = LinkId{-1}; }, "transfer 2: link -1 is outside"},
      {[](Schedule& s) { s.transfers[2].shard = ShardId{1}; },
       "transfer 2: shard 1 is outside [0, 1)"},
      {[](Schedule& s) { s.transfers[2].end = 5; }, "transfer 2: [0, 5) is no interval of"},
      {[](Schedule& s) { s.transfers[2].end = 0; }, "transfer 2: [0, 0) is no interval of"},
      {[](Schedule& s) { s.transfers[2].step = 0; }, "transfer 2: step 0 comes after step 1"},
      {[](Schedule& s) { s.transfers[3].step = 3; }, "transfer 3: step 3 is outside [0, 3)"},
      {[](Schedule& s) {
         s.kind = ScheduleKind::kTimed;
         s.start_ps = {0, 0, 0, 0};
       },
       "a timed schedule has no steps, got 3"},
      {[](Schedule& s) {
         s.kind = ScheduleKind::kTimed;
         s.num_steps = 0;
         s.start_ps = {0, 0, 0, 0};
       },
       "transfer 1: step 1 is outside [0, 1)"},
      {[](Schedule& s) {
         s.kind = ScheduleKind::kTimed;
         s.num_steps = 0;
         for (Transfer& transfer : s.transfers) transfer.step = 0;
         s.start_ps = {0, 5, 4, 6};
       },
       "transfer 2: it starts at 4 ps, after one that starts at 5 ps"},
  };
  const Topology chain = Chain();
  for (const Row& row : rows) {
    SCOPED_TRACE(row.message);
    Schedule schedule = ChainBroadcast(chain);
    row.spoil(schedule);
    const Result<SimReport> report = Simulate(chain, schedule, {1});
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(report.error().message, HasSubstr(row.message));
  }
  EXPECT_THAT(Simulate(chain, ChainBroadcast(chain), {0}).error().message,
              HasSubstr("0 bytes, wanted at least 1"));
}

TEST(SimulatorTest, StopsWhenInterrupted) {
  const Topology chain = Chain();
  for (StepMode mode : {StepMode::kBarrier, StepMode::kEager}) {
    RequestCancel();
    const Result<SimReport> report =
        Simulate(chain, ChainBroadcast(chain), {1, LinkModel::kHeld, mode});
    ResetCancel();
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
  }
}

// --- Traces and curves -------------------------------------------------------------------------

TEST(SimulatorTrace, GoldenText) {
  const Topology chain = Chain();
  Schedule schedule = ChainBroadcast(chain);
  schedule.transfers.resize(3);
  const SimReport report =
      MustSimulate(chain, schedule, {4000, LinkModel::kPipelined, StepMode::kEager});
  EXPECT_EQ(ToChromeTrace(chain, schedule, report),
            R"({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":0,"name":"process_name","args":{"name":"broadcast hand"}},
{"ph":"M","pid":0,"tid":0,"name":"thread_name","args":{"name":"0 -> 1"}},
{"ph":"M","pid":0,"tid":0,"name":"thread_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":0,"tid":2,"name":"thread_name","args":{"name":"1 -> 2"}},
{"ph":"M","pid":0,"tid":2,"name":"thread_sort_index","args":{"sort_index":2}},
{"ph":"X","pid":0,"tid":0,"name":"step 0","ts":0.000000,"dur":1.000000,"args":{"bytes":1000.000,"step":0,"arrives_us":2.000000,"first_transfer":0}},
{"ph":"X","pid":0,"tid":0,"name":"step 1","ts":1.000000,"dur":3.000000,"args":{"bytes":3000.000,"step":1,"arrives_us":5.000000,"first_transfer":1}},
{"ph":"X","pid":0,"tid":2,"name":"step 1","ts":2.000000,"dur":1.000000,"args":{"bytes":1000.000,"step":1,"arrives_us":4.000000,"first_transfer":2}}
]}
)");
}

TEST(SimulatorTrace, IsJsonWhateverNodesAreCalled) {
  Topology::Builder builder(2);
  builder.AddDuplex(NodeId{0}, NodeId{1}, {});
  builder.SetNodeNames({"a\"b\\", "\xff</script>"});
  const Topology topology = hand::MustBuild(std::move(builder));
  const Schedule schedule = hand::RingAllGather(topology, false);
  const nlohmann::json json = nlohmann::json::parse(
      ToChromeTrace(topology, schedule, MustSimulate(topology, schedule, {100})));
  ASSERT_EQ(json.at("traceEvents").size(), 1u + 2 * 2 + 2);
  EXPECT_THAT(json.at("traceEvents").at(1).at("args").at("name").get<std::string>(),
              HasSubstr("a\"b\\ -> "));
}

TEST(SimulatorTrace, UtilisationByHand) {
  const Topology chain = Chain();  // 4 links
  const SimReport report =
      MustSimulate(chain, ChainBroadcast(chain), {4000, LinkModel::kPipelined, StepMode::kBarrier});
  // Links taken: 0-1, 2-5, 2-3, 6-9 us; under way: 0-2, 2-6, 2-4, 6-10 us.
  const std::vector<UtilisationBin> curve = UtilisationOverTime(report, 5);
  ASSERT_EQ(curve.size(), 5u);
  const double busy[] = {0.125, 0.375, 0.125, 0.25, 0.125}, flight[] = {1, 2, 1, 1, 1};
  for (size_t b = 0; b < curve.size(); ++b) {
    EXPECT_NEAR(curve[b].links_busy, busy[b], 1e-9) << b;
    EXPECT_NEAR(curve[b].in_flight, flight[b], 1e-9) << b;
  }
  EXPECT_TRUE(UtilisationOverTime(report, 0).empty());
}

// --- Properties over seeds ---------------------------------------------------------------------

constexpr uint64_t kSeeds = 300;

struct Case {
  Topology topology;
  Schedule schedule;
  int64_t size;
};
Case MakeCase(uint64_t seed, bool homogeneous) {
  Random random(seed);
  const bool exchange = seed % 3 == 0;
  Topology topology = exchange ? hand::RandomComplete(random, homogeneous)
                               : hand::RandomTopology(random, homogeneous);
  Schedule schedule =
      exchange ? hand::RandomExchange(topology, random) : hand::RandomSchedule(topology, random);
  const VerifyReport verdict = Verify(topology, schedule.collective, schedule);
  EXPECT_TRUE(verdict.verified()) << verdict.violations[0].message;
  return {std::move(topology), std::move(schedule),
          static_cast<int64_t>(1 + random.Below(1'000'000))};
}

TEST(SimulatorProperty, BarrierTimeIsTheAnalyticCost) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = MakeCase(seed, seed % 2 == 0);
    const double analytic = AnalyticSeconds(c.topology, c.schedule, c.size).ToDouble();
    for (LinkModel model : {LinkModel::kHeld, LinkModel::kPipelined}) {
      const SimReport report =
          MustSimulate(c.topology, c.schedule, {c.size, model, StepMode::kBarrier});
      EXPECT_NEAR(report.time_s, analytic, 1e-9 * analytic);
    }
  }
}

TEST(SimulatorProperty, EagerIsNeverLaterAndNothingBeatsItsBound) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = MakeCase(seed, seed % 2 == 0);
    const Bounds bounds = ComputeBounds(c.topology, c.schedule.collective).value();
    for (LinkModel model : {LinkModel::kHeld, LinkModel::kPipelined}) {
      const SimReport barrier =
          MustSimulate(c.topology, c.schedule, {c.size, model, StepMode::kBarrier});
      const SimReport eager =
          MustSimulate(c.topology, c.schedule, {c.size, model, StepMode::kEager});
      EXPECT_LE(eager.time_s, barrier.time_s);  // to the last bit
      EXPECT_GE(barrier.time_s, bounds.StepLimit(c.size).ToDouble() * (1 - 1e-9));
      EXPECT_GE(eager.time_s, bounds.Seconds(c.size) * (1 - 1e-9));
      EXPECT_EQ(eager.messages, barrier.messages);
      EXPECT_EQ(eager.link_bytes, barrier.link_bytes);
    }
  }
}

// The case on the same network where about half of the hosts have a limit, most of them tight.
Case WithHostLimits(const Case& c, uint64_t seed) {
  Random random(seed + 1000);
  Topology::Builder builder(c.topology.num_ranks());
  for (const LinkId link : c.topology.Links())
    builder.AddLink(c.topology.tail(link), c.topology.head(link), c.topology.spec(link));
  builder.SetHostBandwidth(NodeId{0}, 1'500'000'000);
  for (const NodeId rank : c.topology.Ranks())
    if (random.Below(2) == 0)
      builder.SetHostBandwidth(rank, static_cast<int64_t>(1 + random.Below(8)) * 700'000'000);
  Case limited{hand::MustBuild(std::move(builder)), c.schedule, c.size};
  limited.schedule.topology_fingerprint = limited.topology.Fingerprint();
  return limited;
}

TEST(SimulatorProperty, HostsWithALimitPassNoMoreThanIt) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Case free = MakeCase(seed, seed % 2 == 0);
    const Case c = WithHostLimits(free, seed);
    const Bounds bounds = ComputeBounds(c.topology, c.schedule.collective).value();
    const double analytic = AnalyticSeconds(c.topology, c.schedule, c.size).ToDouble();
    for (LinkModel model : {LinkModel::kHeld, LinkModel::kPipelined}) {
      const SimReport barrier =
          MustSimulate(c.topology, c.schedule, {c.size, model, StepMode::kBarrier});
      EXPECT_NEAR(barrier.time_s, analytic, 1e-9 * analytic);
      const SimReport eager =
          MustSimulate(c.topology, c.schedule, {c.size, model, StepMode::kEager});
      EXPECT_LE(eager.time_s, barrier.time_s);  // to the last bit
      EXPECT_GE(eager.time_s, bounds.Seconds(c.size) * (1 - 1e-9));
      EXPECT_GE(
          eager.time_s,
          MustSimulate(free.topology, free.schedule, {c.size, model, StepMode::kEager}).time_s);
      for (const NodeId rank : c.topology.Ranks()) {
        if (!c.topology.host_bandwidth(rank)) continue;
        double out = 0, in = 0;
        for (const LinkId link : c.topology.OutLinks(rank)) out += eager.link_bytes[link.index()];
        for (const LinkId link : c.topology.InLinks(rank)) in += eager.link_bytes[link.index()];
        const auto limit = static_cast<double>(*c.topology.host_bandwidth(rank));
        EXPECT_GE(eager.time_s * limit * (1 + 1e-9), std::max(in, out));
      }
    }
  }
}

// What each transfer carries, when the messages start and arrive as reported. At one instant
// events come in the order given by `rank_of_event` (of a transfer, and whether it arrives).
using Values = std::vector<std::vector<std::set<int32_t>>>;  // by transfer and unit
template <class Order>
Values CarriedValues(const Topology& topology, const Schedule& schedule,
                     const std::vector<std::pair<double, double>>& times, Order order) {
  struct Event {
    double time;
    int64_t order;
    bool arrives;
    size_t transfer;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < times.size(); ++i) {
    events.push_back({times[i].first, order(i, false), false, i});
    events.push_back({times[i].second, order(i, true), true, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.time, a.order, !a.arrives, a.transfer) <
           std::tuple(b.time, b.order, !b.arrives, b.transfer);
  });
  std::map<std::tuple<NodeId, ShardId, int32_t>, std::set<int32_t>> state;
  for (ShardId shard : schedule.collective.Shards())
    for (NodeId rank : topology.Ranks())
      for (int32_t unit = 0; unit < schedule.units_per_shard; ++unit)
        if (schedule.collective.contributors(shard).Contains(rank))
          state[{rank, shard, unit}] = {rank.value};
  Values values(times.size());
  for (const Event& event : events) {
    const Transfer& t = schedule.transfers[event.transfer];
    for (int32_t unit = t.begin; unit < t.end; ++unit) {
      std::vector<std::set<int32_t>>& carried = values[event.transfer];
      if (!event.arrives) {
        carried.push_back(state[{topology.tail(t.link), t.shard, unit}]);
        continue;
      }
      std::set<int32_t>& held = state[{topology.head(t.link), t.shard, unit}];
      const std::set<int32_t>& brought = carried[static_cast<size_t>(unit - t.begin)];
      if (t.op == TransferOp::kCopy) held.clear();
      held.insert(brought.begin(), brought.end());
    }
  }
  return values;
}

// The times of each transfer, those of its message.
std::vector<std::pair<double, double>> TimesOf(const Schedule& schedule, const SimReport& report) {
  std::map<std::pair<LinkId, int64_t>, std::pair<double, double>> of_message;
  const bool timed = schedule.kind == ScheduleKind::kTimed;
  for (const SimMessage& message : report.trace)
    of_message[{message.link, timed ? message.first_transfer : message.step}] = {message.start_s,
                                                                                 message.arrive_s};
  std::vector<std::pair<double, double>> times;
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& t = schedule.transfers[i];
    times.push_back(of_message.at({t.link, timed ? static_cast<int64_t>(i) : t.step}));
  }
  return times;
}

TEST(SimulatorProperty, EagerMessagesCarryWhatTheirStepSays) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = MakeCase(seed, seed % 2 == 0);
    for (LinkModel model : {LinkModel::kHeld, LinkModel::kPipelined}) {
      const auto arrivals_first = [](size_t, bool arrives) { return arrives ? 0 : 1; };
      std::vector<std::pair<double, double>> steps;
      for (const Transfer& t : c.schedule.transfers) steps.emplace_back(t.step, t.step + 0.5);
      const auto times = TimesOf(
          c.schedule, MustSimulate(c.topology, c.schedule, {c.size, model, StepMode::kEager}));
      EXPECT_EQ(CarriedValues(c.topology, c.schedule, times, arrivals_first),
                CarriedValues(c.topology, c.schedule, steps, arrivals_first));
    }
  }
}

// A root sends 4000 bytes through a switch twice, 5 us each. The first copy, due to leave the switch
// after the second has set out, does not wait until that has come in.
TEST(SimulatorTest, CopiesPassASwitchOneByOne) {
  Topology::Builder builder(3, 1);
  for (int32_t rank = 0; rank < 3; ++rank) builder.AddDuplex(NodeId{rank}, NodeId{3}, kSlow);
  const Topology star = hand::MustBuild(std::move(builder));
  Schedule plan = hand::Empty(star, hand::MustMake(CollectiveKind::kBroadcast, 3), 0, 1);
  plan.kind = ScheduleKind::kTimed;
  plan.size_bytes = 4000;
  plan.transfers = {{ShardId{0}, FindLink(star, 0, 3), 0, 1, 0},
                    {ShardId{0}, FindLink(star, 0, 3), 0, 1, 0},
                    {ShardId{0}, FindLink(star, 3, 1), 0, 1, 0},
                    {ShardId{0}, FindLink(star, 3, 2), 0, 1, 0}};
  plan.start_ps = {0, 5'000'000, 6'000'000, 10'000'000};
  ASSERT_TRUE(Verify(star, plan.collective, plan).verified());
  const SimReport report = MustSimulate(star, plan, {4000, LinkModel::kHeld, StepMode::kEager});
  EXPECT_EQ(Microseconds(report), (Times{{0, 5, 5}, {5, 10, 10}, {5, 10, 10}, {10, 15, 15}}));
}

// The steps of a schedule as a timed plan in whole picoseconds: each step after the one before, its
// transfers one after the other on a link.
Schedule PlanOf(const Topology& topology, const Schedule& steps, int64_t size) {
  Schedule plan = steps;
  plan.kind = ScheduleKind::kTimed;
  plan.size_bytes = size;
  plan.num_steps = 0;
  std::vector<int64_t> free_at(static_cast<size_t>(topology.num_links()), 0);
  std::vector<std::pair<int64_t, size_t>> order;
  int64_t now = 0, end = 0;
  for (size_t i = 0; i < plan.transfers.size(); ++i) {
    Transfer& t = plan.transfers[i];
    if (i > 0 && steps.transfers[i].step != steps.transfers[i - 1].step) now = end;
    t.step = 0;
    int64_t& free = free_at[t.link.index()];
    order.emplace_back(std::max(now, free), i);
    free = order.back().first + topology.alpha_ps(t.link) +
           TransferPs(plan, t, topology.bandwidth(t.link));
    end = std::max(end, free);
  }
  std::sort(order.begin(), order.end());
  const std::vector<Transfer> unsorted = plan.transfers;
  for (size_t i = 0; i < order.size(); ++i) {
    plan.transfers[i] = unsorted[order[i].second];
    plan.start_ps.push_back(order[i].first);
  }
  return plan;
}

TEST(SimulatorProperty, TimedReplaysCarryWhatThePlanSaysAtEverySize) {
  uint64_t plans = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = MakeCase(seed, seed % 2 == 0);
    const Schedule plan = PlanOf(c.topology, c.schedule, c.size);
    // A transfer that waits for its link may leave when its rank has got more than the step says:
    // then the plan is no correct one and says nothing here.
    if (!Verify(c.topology, plan.collective, plan).verified()) continue;
    ++plans;
    std::vector<int64_t> arrival_ps;
    for (size_t i = 0; i < plan.transfers.size(); ++i) {
      const LinkId link = plan.transfers[i].link;
      arrival_ps.push_back(plan.start_ps[i] + c.topology.alpha_ps(link) +
                           TransferPs(plan, plan.transfers[i], c.topology.bandwidth(link)));
    }
    const auto planned = [&plan, &arrival_ps](size_t i, bool arrives) {
      return arrives ? 2 * arrival_ps[i] : 2 * plan.start_ps[i] + 1;
    };
    std::vector<std::pair<double, double>> plan_times;
    for (size_t i = 0; i < plan.transfers.size(); ++i)
      plan_times.emplace_back(plan.start_ps[i], arrival_ps[i]);
    const Values wanted = CarriedValues(c.topology, plan, plan_times, planned);
    const auto end = static_cast<double>(*std::max_element(arrival_ps.begin(), arrival_ps.end()));
    for (int64_t size : {int64_t{1}, c.size, c.size * 50})
      for (LinkModel model : {LinkModel::kHeld, LinkModel::kPipelined}) {
        const SimReport replay = MustSimulate(c.topology, plan, {size, model});
        EXPECT_EQ(CarriedValues(c.topology, plan, TimesOf(plan, replay), planned), wanted);
        if (size == c.size) {
          EXPECT_LE(replay.time_s, end * 1e-12 * (1 + 1e-12));
        }
      }
  }
  EXPECT_GT(plans, kSeeds / 2);
}

TEST(SimulatorProperty, BooksBalance) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = MakeCase(seed, false);
    const SimReport report = MustSimulate(
        c.topology, c.schedule,
        {c.size, seed % 3 == 0 ? LinkModel::kHeld : LinkModel::kPipelined, StepMode::kEager});
    double bytes = 0, wanted_bytes = 0, busy = 0, binned = 0, flight = 0, binned_flight = 0;
    for (const Transfer& t : c.schedule.transfers)
      wanted_bytes += static_cast<double>(c.size) * t.units() / c.schedule.units_per_shard /
                      c.schedule.collective.num_shards();
    for (double link : report.link_bytes) bytes += link;
    for (double link : report.link_busy_s) busy += link;
    std::vector<double> free_at(report.link_bytes.size(), 0);
    double last_start = 0;
    for (const SimMessage& message : report.trace) {
      EXPECT_GE(message.start_s, free_at[message.link.index()]);
      EXPECT_GE(message.start_s, last_start);
      EXPECT_LE(message.free_s, message.arrive_s);
      free_at[message.link.index()] = message.free_s;
      last_start = message.start_s;
      flight += message.arrive_s - message.start_s;
    }
    for (const UtilisationBin& bin : UtilisationOverTime(report, 37)) {
      binned += bin.links_busy * (bin.end_s - bin.begin_s) * c.topology.num_links();
      binned_flight += bin.in_flight * (bin.end_s - bin.begin_s);
      EXPECT_LE(bin.links_busy, 1 + 1e-9);
      EXPECT_LE(bin.in_flight, report.max_in_flight + 1e-9);
    }
    EXPECT_NEAR(bytes, wanted_bytes, 1e-9 * wanted_bytes);
    EXPECT_NEAR(binned, busy, 1e-9 * busy);
    EXPECT_NEAR(binned_flight, flight, 1e-9 * flight);
  }
}

TEST(SimulatorProperty, SameInputSameBytes) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Case c = MakeCase(seed, false);
    const SimOptions options{c.size, LinkModel::kHeld, StepMode::kEager};
    EXPECT_EQ(ToChromeTrace(c.topology, c.schedule, MustSimulate(c.topology, c.schedule, options)),
              ToChromeTrace(c.topology, c.schedule, MustSimulate(c.topology, c.schedule, options)));
  }
}

}  // namespace
}  // namespace tutti

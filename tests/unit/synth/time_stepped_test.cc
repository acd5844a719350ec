// tsmcf and mcf: figures by hand and of the paper, the linear program as an oracle, no schedule
// below any limit, what users may fix, and what is refused.
#include "alltoall/time_stepped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "alltoall/time_stepped_lp.h"
#include "tutti/base/parallel.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"
#include "unit/flow/concurrent_flow_testing.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using Maker = Result<TimeStepped> (*)(const Topology&, const Collective&, const SynthOptions&);

Collective AllToAll(const Topology& topology, std::vector<int64_t> demand = {}) {
  const bool weighted = !demand.empty();
  return *Collective::Make(weighted ? CollectiveKind::kAllToAllV : CollectiveKind::kAllToAll,
                           topology.num_ranks(),
                           {.root = 0, .all_reduce_shards = 0, .demand = std::move(demand)});
}

// Correct, and not better than any limit there is.
TimeStepped MustMake(Maker make, const Topology& topology, const Collective& collective,
                     const SynthOptions& options = {}) {
  Result<TimeStepped> made = make(topology, collective, options);
  EXPECT_TRUE(made) << topology.name() << ": " << (made ? "" : made.error().message);
  const Schedule& schedule = made->schedule;
  const VerifyReport report = Verify(topology, collective, schedule);
  EXPECT_TRUE(report.verified()) << topology.name() << ": " << report.violations.front().message;
  EXPECT_EQ(schedule.topology_fingerprint, topology.Fingerprint());
  EXPECT_EQ(schedule.seed, options.seed);
  EXPECT_EQ(made->tb, AnalyticCost(topology, schedule).tb);
  EXPECT_GE(made->tb, made->tb_bound) << topology.name();
  const Bounds bounds = *ComputeBounds(topology, collective);
  EXPECT_GE(made->tb, bounds.tb) << topology.name();
  EXPECT_GE(schedule.num_steps, bounds.steps);
  EXPECT_EQ(made->fewest_steps, bounds.steps);
  return *std::move(made);
}

TimeStepped MustMake(Maker make, const std::string& expression, const SynthOptions& options = {}) {
  const Topology topology = Parse(expression);
  return MustMake(make, topology, AllToAll(topology), options);
}

TimeSteppedLimit MustSolve(const Topology& topology, const Collective& collective, int32_t steps) {
  const Result<TimeSteppedLimit> limit = SolveTimeSteppedProgram(topology, collective, steps);
  EXPECT_TRUE(limit) << topology.name() << ": " << (limit ? "" : limit.error().message);
  // The exact limit of the prices is the optimum, but for rounding.
  EXPECT_NEAR(limit->tb_limit.ToDouble(), limit->tb, 1e-5 * limit->tb) << topology.name();
  return *limit;
}

// A directed ring of three: each link carries the block to its head and, of the two that go two
// hops, one in each step: three blocks of M / 3 over links of B.
TEST(TimeStepped, RingOfThreeByHand) {
  for (const Maker make : {MakeTimeStepped, MakeFlowSteps}) {
    const TimeStepped made = MustMake(make, "uniring(1,3)");
    EXPECT_EQ(made.schedule.num_steps, 2);
    EXPECT_EQ(made.schedule.units_per_shard, 1);
    EXPECT_EQ(made.schedule.transfers.size(), 9u);
    EXPECT_EQ(made.tb, Rational(1));
    EXPECT_EQ(made.Loss(), Rational(0));
  }
}

// Links / sum of distances on the networks of figure 3: 1 / f = 5/2, 4, 4, 9 and, where 100 of 150
// Gbit/s pass the host, 27/2 blocks per link; M is N blocks, B is d links.
TEST(TimeStepped, NetworksOfThePaperAreExact) {
  const struct {
    const char* network;
    Rational tb;
    int32_t steps;
  } rows[] = {{"bipartite(4)", Rational(5, 4), 2},
              {"hypercube(3)", Rational(3, 2), 3},
              {"twisted_hypercube(3)", Rational(3, 2), 2},
              {"torus(3,3,3,bw=25Gbit/s)", Rational(2), 3},
              {"torus(3,3,3,bw=25Gbit/s,host_bw=100Gbit/s)", Rational(3), 3}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.network);
    const TimeStepped made = MustMake(MakeTimeStepped, row.network);
    EXPECT_EQ(made.tb, row.tb);
    EXPECT_EQ(made.tb_bound, row.tb);
    EXPECT_EQ(made.schedule.num_steps, row.steps);
    EXPECT_EQ(made.schedule.algorithm, "tsmcf");
  }
}

struct Close {
  const char* network;
  int32_t steps, chunks;
  double loss;
};

void ExpectClose(std::span<const Close> rows) {
  for (const Close& row : rows) {
    SCOPED_TRACE(row.network);
    const SynthOptions options{.chunks = row.chunks, .steps = row.steps};
    EXPECT_LE(MustMake(MakeTimeStepped, row.network, options).Loss().ToDouble(), row.loss);
  }
}

TEST(TimeStepped, IrregularNetworksComeClose) {
  const Close rows[] = {
      {"genkautz(4,20)", 3, 14, 0.01}, {"torus(3,4,bw=[10,25]GB/s)", 3, 1, 0},
      {"mesh(3,4)", 5, 1, 0},          {"dgx1", 2, 3, 0},
      {"switch(5)", 6, 8, 0.5},        {"without(torus(3,3,host_bw=120GB/s),links=2)", 4, 6, 0.03}};
  ExpectClose(rows);
}

TEST(TimeSteppedSlow, LargerNetworksComeClose) {
  const Close rows[] = {{"genkautz(4,50)", 5, 5, 0.02},
                        {"genkautz(4,100)", 5, 4, 0.01},
                        {"without(torus(4,4),links=3)", 4, 15, 0.01},
                        {"without(torus(3,3,3),links=3)", 3, 8, 0},
                        {"without(torus(3,3,3),links=3,seed=2)", 4, 8, 0}};
  ExpectClose(rows);
}

TEST(TimeStepped, OverTheWaysOfTheFlow) {
  for (const char* network : {"bipartite(4)", "hypercube(3)", "torus(3,3,3)", "mesh(3,4)"}) {
    const TimeStepped made = MustMake(MakeFlowSteps, network);
    EXPECT_EQ(made.Loss(), Rational(0)) << network;
    EXPECT_EQ(made.schedule.algorithm, "mcf");
  }
  for (const char* network : {"genkautz(4,20)", "torus(3,3,host_bw=120GB/s)"})
    EXPECT_LE(MustMake(MakeFlowSteps, network, {.chunks = 7, .steps = 4}).Loss().ToDouble(), 0.03)
        << network;
}

// What the program allows with divisible data falls with the steps, down to 1 / f, and no schedule
// of so many steps is below it.
TEST(TimeStepped, TheLinearProgramIsALimitAndNearlyReached) {
  for (const char* network :
       {"hypercube(3)", "bipartite(4)", "genkautz(2,7)", "without(torus(3,3),links=2)",
        "torus(3,3,host_bw=120GB/s)", "mesh(2,3,bw=[10,25]GB/s)", "switch(4)", "ring(5)"}) {
    SCOPED_TRACE(network);
    const Topology topology = Parse(network);
    const Collective collective = AllToAll(topology);
    double before = 1e9;
    const int32_t diameter = ComputeBounds(topology, collective)->steps;
    for (int32_t steps = diameter; steps <= diameter + 2; ++steps) {
      const TimeSteppedLimit limit = MustSolve(topology, collective, steps);
      EXPECT_LE(limit.tb, before * (1 + 1e-6));
      before = limit.tb;
      const TimeStepped made =
          MustMake(MakeTimeStepped, topology, collective, {.steps = steps, .max_chunks = 4});
      EXPECT_LE(made.schedule.num_steps, steps);
      EXPECT_GE(made.tb, limit.tb_limit);
      EXPECT_GE(limit.tb, made.tb_bound.ToDouble() * (1 - 1e-6));
      EXPECT_LE(made.tb.ToDouble(), limit.tb * 1.2);
    }
  }
}

TEST(TimeStepped, RandomNetworksAndDemandsKeepToEveryLimit) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology =
        RandomNetwork(random, 5, seed % 3 == 0 ? 2 : 0, seed % 2 == 0 ? 1 : 4);
    const Collective collective =
        AllToAll(topology, seed % 4 == 1 ? std::vector<int64_t>{} : RandomDemand(random, 5));
    const SynthOptions options{.chunks = 4, .seed = seed};
    const TimeStepped made = MustMake(MakeTimeStepped, topology, collective, options);
    const TimeSteppedLimit limit = MustSolve(topology, collective, made.schedule.num_steps);
    EXPECT_GE(made.tb, limit.tb_limit);
    EXPECT_LE(made.Loss().ToDouble(), 0.6);
    MustMake(MakeFlowSteps, topology, collective, options);
  }
}

TEST(TimeStepped, SameBytesAgainAndOnAnyNumberOfThreads) {
  const Topology topology = Parse("without(torus(3,3),links=2)");
  const Collective collective = AllToAll(topology);
  for (const Maker make : {MakeTimeStepped, MakeFlowSteps}) {
    const TimeStepped made = MustMake(make, topology, collective, {.max_chunks = 4});
    for (int threads : {1, 3}) {
      SetNumThreads(threads);
      EXPECT_EQ(make(topology, collective, {.max_chunks = 4})->schedule, made.schedule);
    }
    SetNumThreads(0);
  }
}

TEST(TimeStepped, StepsAndChunksCanBeFixed) {
  const TimeStepped made = MustMake(MakeTimeStepped, "genkautz(2,7)",
                                    {.chunks = 5, .tries = 1, .steps = 4, .max_chunks = 5});
  EXPECT_EQ(made.schedule.units_per_shard, 5);
  EXPECT_LE(made.schedule.num_steps, 4);
  EXPECT_EQ(made.tried, 1);
  EXPECT_LE(MustMake(MakeTimeStepped, "genkautz(2,7)", {.max_chunks = 3}).schedule.units_per_shard,
            3);
}

// Where messages are short, fewer steps are worth more than balanced links.
TEST(TimeStepped, TheSizeDecidesBetweenStepsAndBandwidth) {
  const char* network = "genkautz(2,12)";
  const TimeStepped small =
      MustMake(MakeTimeStepped, network, {.chunks = 4, .size_bytes = 1 << 10});
  const TimeStepped large =
      MustMake(MakeTimeStepped, network, {.chunks = 4, .size_bytes = int64_t{1} << 40});
  EXPECT_EQ(small.schedule.num_steps, small.fewest_steps);
  EXPECT_LE(large.tb, small.tb);
}

TEST(TimeStepped, SaysWhatIsWrong) {
  const Topology topology = Parse("torus(3,3)");
  const Collective collective = AllToAll(topology);
  const auto message = [&](const SynthOptions& options) {
    const Result<TimeStepped> made = MakeTimeStepped(topology, collective, options);
    return made ? std::string("none") : made.error().message;
  };
  EXPECT_THAT(message({.steps = 1}), HasSubstr("1 steps are too few: 2"));
  EXPECT_THAT(message({.steps = -1}), HasSubstr("steps must be at least 1, got -1"));
  EXPECT_THAT(message({.chunks = -3}), HasSubstr("chunks must be at least 1, got -3"));
  EXPECT_THAT(message({.chunks = 5, .max_chunks = 4}), HasSubstr("5 chunks per block"));
  EXPECT_THAT(SolveTimeSteppedProgram(topology, collective, 1).error().message,
              HasSubstr("too few"));
  EXPECT_FALSE(RunSynthesizer(**FindSynthesizer("tsmcf"), topology,
                              MustCollective(CollectiveKind::kAllGather, 9), {}));
}

}  // namespace
}  // namespace tutti

#include <bit>
#include <vector>

#include "tutti/base/cancel.h"
#include "tutti/base/random.h"
#include "unit/synth/classic_support.h"

namespace tutti::classic_test {
namespace {

using Kind = CollectiveKind;

constexpr std::string_view kAlgorithms[] = {"ring", "uniring", "direct",    "rhd",
                                            "dbt",  "bruck",   "torus-dims"};

bool Makes(std::string_view name, Kind kind) {
  for (Kind made : Algorithm(name).collectives)
    if (made == kind) return true;
  return false;
}

// --- Costs by hand ------------------------------------------------------------------------------

TEST(ClassicTest, UniringGoesOnceRoundAOneWayRing) {
  for (int32_t n : {2, 3, 5, 8, 16}) {
    const StepCost cost =
        CostOf("uniring", "uniring(1," + std::to_string(n) + ")", Kind::kAllGather);
    EXPECT_EQ(cost.tl, n - 1);
    EXPECT_EQ(cost.tb, Rational(n - 1, n));
  }
}

TEST(ClassicTest, UniringOfAllReduceCostsBothHalves) {
  const StepCost cost = CostOf("uniring", "uniring(1,6)", Kind::kAllReduce);
  EXPECT_EQ(cost.tl, 10);
  EXPECT_EQ(cost.tb, Rational(10, 6));
}

TEST(ClassicTest, UniringLeavesHalfOfATwoWayRingIdle) {
  EXPECT_EQ(CostOf("uniring", "ring(8)", Kind::kAllGather).tb, Rational(2 * 7, 8));
}

TEST(ClassicTest, RingTakesBothWaysOfARing) {
  for (int32_t n : {3, 4, 7, 12}) {
    const StepCost cost = CostOf("ring", "ring(" + std::to_string(n) + ")", Kind::kAllGather);
    EXPECT_EQ(cost.tl, n - 1);
    EXPECT_EQ(cost.tb, Rational(n - 1, n));
  }
}

TEST(ClassicTest, RingTakesAllSixRingsOfDgx1) {
  const Topology dgx1 = Parse("dgx1");
  const Schedule schedule = MustRun("ring", dgx1, Kind::kAllGather);
  EXPECT_EQ(schedule.units_per_shard, 6);
  EXPECT_EQ(AnalyticCost(dgx1, schedule).tl, 7);
  EXPECT_EQ(AnalyticCost(dgx1, schedule).tb, Rational(7, 8));
}

TEST(ClassicTest, RingIsBandwidthOptimalWhereTheNetworkSplitsIntoRings) {
  for (const char* expression : {"torus(4,4)", "torus(3,3)", "torus(5,5)", "complete(7)",
                                 "hypercube(4)", "circulant(10,1,3)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const int32_t n = topology.num_ranks();
    const StepCost cost = CostOf("ring", expression, Kind::kAllGather);
    EXPECT_EQ(cost.tl, n - 1);
    EXPECT_EQ(cost.tb, Rational(n - 1, n));
  }
}

TEST(ClassicTest, DirectOnACompleteGraphIsOneStep) {
  for (Kind kind : {Kind::kAllGather, Kind::kAllToAll, Kind::kReduceScatter}) {
    const StepCost cost = CostOf("direct", "complete(6)", kind);
    EXPECT_EQ(cost.tl, 1);
    EXPECT_EQ(cost.tb, Rational(5, 6));
  }
}

TEST(ClassicTest, DirectTakesAsManyStepsAsTheDiameter) {
  for (Kind kind : {Kind::kAllGather, Kind::kAllToAll, Kind::kScatter, Kind::kGather,
                    Kind::kBroadcast, Kind::kReduce}) {
    EXPECT_EQ(CostOf("direct", "torus(4,4)", kind).tl, 4);
    EXPECT_EQ(CostOf("direct", "hypercube(3)", kind).tl, 3);
  }
}

TEST(ClassicTest, RecursiveDoublingOnAHypercubeTakesOneDimensionAStep) {
  for (int32_t n = 1; n <= 5; ++n) {
    const Topology cube = Parse("hypercube(" + std::to_string(n) + ")");
    const Schedule schedule = MustRun("rhd", cube, Kind::kAllGather);
    const int32_t ranks = 1 << n;
    EXPECT_EQ(schedule.num_steps, n);
    for (const Transfer& transfer : schedule.transfers) {
      const int32_t flipped = cube.tail(transfer.link).value ^ cube.head(transfer.link).value;
      EXPECT_EQ(flipped, ranks >> (transfer.step + 1));
    }
    // One of n links busy at a time.
    EXPECT_EQ(AnalyticCost(cube, schedule).tb, Rational(n * (ranks - 1), ranks));
  }
}

TEST(ClassicTest, RecursiveDoublingFoldsTheRanksBeyondAPowerOfTwo) {
  EXPECT_EQ(CostOf("rhd", "complete(8)", Kind::kAllGather).tl, 3);
  for (int32_t n : {3, 5, 6, 7, 9, 12}) {
    const auto rounds = static_cast<int32_t>(std::bit_width(static_cast<uint32_t>(n))) - 1;
    EXPECT_EQ(CostOf("rhd", "complete(" + std::to_string(n) + ")", Kind::kAllGather).tl,
              rounds + 2);
  }
}

TEST(ClassicTest, BruckTakesTheLogarithmOfTheRanks) {
  for (int32_t n = 2; n <= 17; ++n) {
    const auto rounds = static_cast<int32_t>(std::bit_width(static_cast<uint32_t>(n - 1)));
    EXPECT_EQ(CostOf("bruck", "complete(" + std::to_string(n) + ")", Kind::kAllGather).tl, rounds);
  }
}

TEST(ClassicTest, TorusDimsTakesTheSumOfTheLengths) {  // [direct-connect] 6.2
  struct Row {
    const char* expression;
    int32_t tl;
  };
  for (const Row& row :
       {Row{"torus(4,4)", 6}, Row{"torus(3,3,3)", 6}, Row{"torus(3,3,2)", 5}, Row{"torus(5,3)", 6},
        Row{"torus(7)", 6}, Row{"torus(2,2,2)", 3}, Row{"mesh(3,5)", 6}, Row{"torus(1,4)", 3}}) {
    SCOPED_TRACE(row.expression);
    EXPECT_EQ(CostOf("torus-dims", row.expression, Kind::kAllGather).tl, row.tl);
    EXPECT_EQ(CostOf("torus-dims", row.expression, Kind::kAllReduce).tl, 2 * row.tl);
  }
}

TEST(ClassicTest, TorusDimsIsBandwidthOptimalOnEqualDimensionsOnly) {  // [direct-connect] 6.2
  EXPECT_EQ(CostOf("torus-dims", "torus(4,4)", Kind::kAllGather).tb, Rational(15, 16));
  EXPECT_EQ(CostOf("torus-dims", "torus(3,3,3)", Kind::kAllGather).tb, Rational(26, 27));
  EXPECT_EQ(CostOf("torus-dims", "torus(2,2,2)", Kind::kAllGather).tb, Rational(7, 8));
  EXPECT_GT(CostOf("torus-dims", "torus(3,3,2)", Kind::kAllGather).tb, Rational(17, 18));
  EXPECT_GT(CostOf("torus-dims", "torus(6,3)", Kind::kAllGather).tb, Rational(17, 18));
}

TEST(ClassicTest, DoubleTreeIsPipelined) {
  // The root and 7 ranks in a full tree below: 3 steps, and one more for each further chunk. An
  // all-reduce spreads the first chunk as soon as it is reduced, after 3 steps.
  for (int32_t chunks : {2, 4, 16}) {
    const StepCost cost = CostOf("dbt", "complete(8)", Kind::kBroadcast, {.chunks = chunks});
    EXPECT_EQ(cost.tl, 3 + chunks / 2 - 1);
    EXPECT_EQ(CostOf("dbt", "complete(8)", Kind::kAllReduce, {.chunks = chunks}).tl, 3 + cost.tl);
  }
}

TEST(ClassicTest, ChunksOfPipelinesGrowWithTheSize) {
  const Topology ring = Parse("ring(16)");
  for (const char* name : {"dbt", "ring"}) {
    const Schedule small = MustRun(name, ring, Kind::kBroadcast, {.size_bytes = 1024});
    const Schedule large = MustRun(name, ring, Kind::kBroadcast, {.size_bytes = 1 << 28});
    EXPECT_EQ(small.units_per_shard, 2);
    EXPECT_GT(large.units_per_shard, 64);
  }
}

TEST(ClassicTest, PipelinedRingBroadcastApproachesItsLimit) {
  // 1024 chunks: the limit is M at B (both links in), the fill costs 2 (N - 2) chunks more.
  const StepCost cost = CostOf("ring", "ring(8)", Kind::kBroadcast, {.chunks = 1024});
  EXPECT_EQ(cost.tl, 7 + 511);
  EXPECT_EQ(cost.tb, Rational(518 * 2, 1024));
}

TEST(ClassicTest, BlocksWithoutBytesAreNotSent) {
  const Topology ring = Parse("ring(4)");
  std::vector<int64_t> demand(16, 0);
  demand[0 * 4 + 1] = 7;
  demand[2 * 4 + 0] = 5;
  demand[3 * 4 + 3] = 9;  // its own: nothing to move
  const Collective collective = *Collective::Make(Kind::kAllToAllV, 4, {.demand = demand});
  const Result<Schedule> schedule = Synthesize("direct", ring, collective, {.chunks = 1});
  ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
  ExpectSound("direct", ring, collective, *schedule);
  EXPECT_EQ(schedule->transfers.size(), 3u);
}

// --- Wrong requests -----------------------------------------------------------------------------

struct Refusal {
  const char* name;
  const char* expression;
  Kind kind;
  int32_t chunks;
  ErrorCode code;
  const char* message;
};

TEST(ClassicTest, RefusalsSayWhatWouldDo) {
  const Refusal rows[] = {
      {"torus-dims", "torus(4,4)", Kind::kAllGather, 6, ErrorCode::kInvalidArgument,
       "2 rotations and 2 directions: chunks must be a multiple of 4, got 6"},
      {"torus-dims", "complete(4)", Kind::kAllGather, 0, ErrorCode::kInfeasible, "needs a grid"},
      {"ring", "ring(8)", Kind::kAllGather, 3, ErrorCode::kInvalidArgument,
       "chunks must be a multiple of 2, got 3"},
      {"dbt", "ring(8)", Kind::kBroadcast, 5, ErrorCode::kInvalidArgument,
       "chunks must be a multiple of 2, got 5"},
      {"direct", "ring(8)", Kind::kAllGather, -1, ErrorCode::kInvalidArgument,
       "chunks must be at least 1, got -1"},
      {"direct", "switch(4)", Kind::kReduceScatter, 0, ErrorCode::kInfeasible,
       "unwind(switch(4),degree=2)"},
      {"dbt", "switch(4)", Kind::kAllReduce, 0, ErrorCode::kInfeasible,
       "unwind(switch(4),degree=2)"},
      {"rhd", "ring(8)", Kind::kAllToAll, 0, ErrorCode::kInfeasible, "makes no all-to-all"},
  };
  for (const Refusal& row : rows) {
    SCOPED_TRACE(std::string(row.name) + " on " + row.expression);
    const Topology topology = Parse(row.expression);
    const Result<Schedule> made =
        Synthesize(row.name, topology, CollectiveFor(row.name, row.kind, topology.num_ranks()),
                   {.chunks = row.chunks});
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, row.code);
    EXPECT_NE(made.error().message.find(row.message), std::string::npos) << made.error().message;
  }
}

TEST(ClassicTest, AllReduceOfTheOtherFormIsRefused) {
  const Topology ring = Parse("ring(4)");
  const Collective many = *Collective::Make(Kind::kAllReduce, 4);
  const Collective one = *Collective::Make(Kind::kAllReduce, 4, {.all_reduce_shards = 1});
  EXPECT_EQ(Synthesize("dbt", ring, many).error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(Synthesize("rhd", ring, one).error().code, ErrorCode::kInfeasible);
}

TEST(ClassicTest, InterruptionEndsTheWork) {
  for (const char* expression : {"torus(4,4)", "uniring(1,5)"}) {
    const Topology topology = Parse(expression);
    for (std::string_view name : kAlgorithms)
      for (Kind kind : Algorithm(name).collectives) {
        if (kind == Kind::kAllToAllV || (name == "torus-dims" && !topology.grid())) continue;
        RequestCancel();
        const Result<Schedule> made =
            Synthesize(name, topology, CollectiveFor(name, kind, topology.num_ranks()));
        ResetCancel();
        ASSERT_FALSE(made.has_value());
        EXPECT_EQ(made.error().code, ErrorCode::kCancelled);
      }
  }
}

// --- Every algorithm, every collective, many networks -------------------------------------------

void ExpectAllSound(const Topology& topology, uint64_t seed, int32_t chunks_factor) {
  SCOPED_TRACE(topology.name());
  for (std::string_view name : kAlgorithms) {
    if (name == "torus-dims" && !topology.grid()) continue;
    for (Kind kind : Algorithm(name).collectives) {
      const auto root = static_cast<int32_t>(seed % static_cast<uint64_t>(topology.num_ranks()));
      Collective collective =
          kind == Kind::kAllToAllV
              ? *Collective::Make(
                    Kind::kAllToAllV, topology.num_ranks(),
                    [&] {
                      Random random(seed);
                      Collective::Options options;
                      const auto n = static_cast<size_t>(topology.num_ranks());
                      for (size_t i = 0; i < n * n; ++i)
                        options.demand.push_back(static_cast<int64_t>(random.Below(4)));
                      options.demand[1] = 3;
                      return options;
                    }())
              : CollectiveFor(name, kind, topology.num_ranks(), root);
      SCOPED_TRACE(std::string(name) + " " + std::string(Name(kind)));
      SynthOptions options{.seed = seed, .size_bytes = 1 << 22};
      if (topology.has_switches() && collective.reduces()) {
        EXPECT_EQ(Synthesize(name, topology, collective, options).error().code,
                  ErrorCode::kInfeasible);
        continue;
      }
      const Result<Schedule> made = Synthesize(name, topology, collective, options);
      ASSERT_TRUE(made.has_value()) << made.error().message;
      ExpectSound(name, topology, collective, *made);
      EXPECT_EQ(*Synthesize(name, topology, collective, options), *made);
      if (chunks_factor == 1) continue;
      options.chunks = made->units_per_shard * chunks_factor;
      const Result<Schedule> finer = Synthesize(name, topology, collective, options);
      ASSERT_TRUE(finer.has_value()) << finer.error().message;
      EXPECT_EQ(finer->units_per_shard, options.chunks);
      ExpectSound(name, topology, collective, *finer);
    }
  }
}

TEST(ClassicProperty, SchedulesAreProvenOnNamedNetworks) {
  uint64_t seed = 1;
  for (const char* expression : {"ring(2)",
                                 "ring(3)",
                                 "ring(9)",
                                 "uniring(1,2)",
                                 "uniring(1,5)",
                                 "uniring(2,6)",
                                 "biring(4,5)",
                                 "torus(4,4)",
                                 "torus(3,2,2)",
                                 "torus(5,3)",
                                 "torus(2,2)",
                                 "torus(1,4)",
                                 "mesh(3,3)",
                                 "mesh(4,3)",
                                 "mesh(5)",
                                 "mesh(2,3,2)",
                                 "hypercube(1)",
                                 "hypercube(4)",
                                 "complete(2)",
                                 "complete(6)",
                                 "bipartite(3)",
                                 "dgx1",
                                 "without(torus(4,4),links=3,seed=2)",
                                 "without(torus(3,3),nodes=1,seed=1)",
                                 "genkautz(2,7)",
                                 "genkautz(3,10)",
                                 "kautz(2,2)",
                                 "debruijn(2,3)",
                                 "dircirculant(2)",
                                 "circulant(9,1,2)",
                                 "twisted_torus(8,4)",
                                 "torus(4,3,bw=[10,40]GB/s,alpha=[1,2]us)"})
    ExpectAllSound(Parse(expression), ++seed, 2);
}

TEST(ClassicProperty, SwitchesForwardAndNeverReduce) {
  for (const char* expression : {"switch(2)", "switch(5)", "switch2d(2,3)", "rfs(3,2,2)"})
    ExpectAllSound(Parse(expression), 3, 2);
}

Topology RandomDigraph(uint64_t seed) {
  Random random(seed);
  const auto ranks = static_cast<int32_t>(2 + random.Below(9));
  const auto switches = static_cast<int32_t>(seed % 3 == 0 ? random.Below(3) : 0);
  const int32_t nodes = ranks + switches;
  Topology::Builder builder(ranks, switches);
  const auto node = [&] {
    return NodeId{static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes)))};
  };
  const auto spec = [&] {
    return LinkSpec{static_cast<int64_t>(1 + random.Below(4)) * 1'000'000'000, 500'000};
  };
  for (int32_t i = 0; i < nodes; ++i) {  // a closed walk makes it strongly connected
    const int32_t next = (i + 1) % nodes;
    builder.AddLink(NodeId{i}, NodeId{next}, spec());
  }
  for (uint64_t left = random.Below(20); left > 0; --left) {
    const NodeId tail = node(), head = node();
    if (tail != head) builder.AddLink(tail, head, spec());
  }
  builder.SetName("random digraph " + std::to_string(seed));
  return *std::move(builder).Build();
}

TEST(ClassicProperty, SchedulesAreProvenOnRandomDigraphs) {
  for (uint64_t seed = 0; seed < 60; ++seed) ExpectAllSound(RandomDigraph(seed), seed, 1);
}

TEST(ClassicProperty, EveryRootWorks) {
  for (const char* expression : {"mesh(3,2)", "uniring(1,4)", "genkautz(2,6)"}) {
    const Topology topology = Parse(expression);
    for (std::string_view name : {"ring", "uniring", "direct", "dbt"})
      for (Kind kind : {Kind::kBroadcast, Kind::kReduce, Kind::kScatter, Kind::kGather}) {
        if (!Makes(name, kind)) continue;
        for (int32_t root = 0; root < topology.num_ranks(); ++root)
          MustRun(name, topology, kind, {.chunks = 4}, root);
      }
  }
}

}  // namespace
}  // namespace tutti::classic_test

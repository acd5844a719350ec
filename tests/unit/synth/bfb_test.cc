#include "tutti/synth/bfb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bfb_testing.h"
#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/base/random.h"
#include "tutti/bounds/bounds.h"
#include "tutti/graph/distance.h"
#include "tutti/sched/cost.h"

namespace tutti {
namespace {

constexpr CollectiveKind kAllGather = CollectiveKind::kAllGather;

// Makes the all-gather, proves it, and checks that the cost without a schedule is the same.
StepCost MustCostOfSchedule(const Topology& topology, const SynthOptions& options = {}) {
  const Schedule schedule = MustSynthesize(topology, AllGather(topology), options);
  const StepCost cost = AnalyticCost(topology, schedule);
  const BfbCost predicted = MustCost(topology, options);
  EXPECT_EQ(cost.tl, predicted.tl);
  EXPECT_EQ(cost.tl, schedule.num_steps);
  if (predicted.tb) {
    EXPECT_EQ(cost.tb, *predicted.tb);
  }
  EXPECT_EQ(schedule.units_per_shard, predicted.units_per_shard);
  EXPECT_EQ(AnalyticSeconds(topology, schedule, options.size_bytes), predicted.seconds);
  return cost;
}

// --- Worked example: figure 1, K2,2
// ----------------------------------------------------------------

TEST(BfbTest, BipartiteOfTwoAndTwoByHand) {
  const Topology topology = Parse("bipartite(2)");  // 0, 1 on one side, 2, 3 on the other
  const Schedule schedule = MustSynthesize(topology, AllGather(topology));
  EXPECT_EQ(schedule.units_per_shard, 2);
  EXPECT_EQ(schedule.num_steps, 2);
  // What rank 0 gets: its neighbours' shards at once, then half of rank 1's over each of them.
  std::vector<std::string> to_rank_0;
  for (const Transfer& transfer : schedule.transfers)
    if (topology.head(transfer.link).value == 0)
      to_rank_0.push_back("step " + std::to_string(transfer.step) + " shard " +
                          std::to_string(transfer.shard.value) + " [" +
                          std::to_string(transfer.begin) + "," + std::to_string(transfer.end) +
                          ") from " + std::to_string(topology.tail(transfer.link).value));
  EXPECT_EQ(to_rank_0, (std::vector<std::string>{
                           "step 0 shard 2 [0,2) from 2", "step 0 shard 3 [0,2) from 3",
                           "step 1 shard 1 [0,1) from 2", "step 1 shard 1 [1,2) from 3"}));
  EXPECT_EQ(AnalyticCost(topology, schedule).tb, Rational(3, 4));
}

// --- The figures of the papers
// ---------------------------------------------------------------------

TEST(BfbTest, IsBandwidthOptimalOnSymmetricNetworks) {
  for (const char* expression : {"ring(2)",
                                 "ring(3)",
                                 "ring(8)",
                                 "ring(9)",
                                 "torus(4,4)",
                                 "torus(2,2)",
                                 "torus(2,3)",
                                 "torus(5,2)",
                                 "torus(2,3,4)",
                                 "torus(3,3,3)",
                                 "torus(3,3,2)",
                                 "torus(3,3,3,2)",
                                 "torus(4,5,6)",
                                 "torus(1,7)",
                                 "torus(8,4)",
                                 "torus(2,2,2,2,2)",
                                 "torus(7,11)",
                                 "hypercube(1)",
                                 "hypercube(6)",
                                 "complete(2)",
                                 "complete(9)",
                                 "complete(80)",
                                 "bipartite(1)",
                                 "bipartite(5)",
                                 "bipartite(70)",
                                 "hamming(2,3)",
                                 "hamming(3,3)",
                                 "hamming(2,9)",
                                 "hamming(4,2)",
                                 "uniring(1,6)",
                                 "uniring(3,6)",
                                 "biring(4,7)",
                                 "biring(2,2)",
                                 "twisted_torus(8,4)",
                                 "twisted_torus(4,4,8)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    EXPECT_EQ(MustCostOfSchedule(topology).tb, OptimalTb(topology));
  }
}

TEST(BfbTest, IsBandwidthOptimalOnCirculantsOfDegreeFour) {
  for (int n = 5; n <= 40; ++n)
    for (int b = 2; 2 * b < n; ++b)
      for (int a = 1; a < b; ++a) {
        if (std::gcd(n, std::gcd(a, b)) != 1) continue;
        const std::string expression = "circulant(" + std::to_string(n) + "," + std::to_string(a) +
                                       "," + std::to_string(b) + ")";
        SCOPED_TRACE(expression);
        const Topology topology = Parse(expression);
        EXPECT_EQ(*MustCost(topology).tb, OptimalTb(topology));
      }
}

TEST(BfbTest, CirculantsOfDegreeFourAreProvenToo) {
  for (const char* expression :
       {"circulant(7,2,3)", "circulant(11,2,3)", "circulant(12,2,3)", "circulant(25,1,7)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    EXPECT_EQ(MustCostOfSchedule(topology).tb, OptimalTb(topology));
  }
}

TEST(BfbTest, ReachesTheRowsOfTheTableOfParetoEfficientNetworks) {
  struct Row {
    const char* expression;
    int32_t tl;
    const char* tb;  // rounded down to three digits in the paper
  };
  for (const Row& row : {Row{"genkautz(4,64)", 3, "1.312"}, Row{"genkautz(4,1024)", 5, "1.332"},
                         Row{"debruijn(4,4)", 4, "1.328"}}) {
    SCOPED_TRACE(row.expression);
    const StepCost cost = MustCostOfSchedule(Parse(row.expression));
    EXPECT_EQ(cost.tl, row.tl);
    const Rational printed = *Rational::Parse(row.tb);
    EXPECT_GE(cost.tb, printed);
    EXPECT_LT(cost.tb, printed + Rational(1, 1000));
  }
}

TEST(BfbTest, GeneralizedKautzIsWithinTwiceTheOptimum) {
  for (const int degree : {2, 4, 8, 16})
    for (int n = degree + 1; n <= 2000; n += 1 + n / 3) {
      const Topology topology =
          Parse("genkautz(" + std::to_string(degree) + "," + std::to_string(n) + ")");
      SCOPED_TRACE(topology.name());
      const BfbCost cost = MustCost(topology);
      EXPECT_LE(*cost.tb, Rational(2) * OptimalTb(topology));
      EXPECT_LE(cost.tl, MooreBoundSteps(n, degree) + 1);
    }
}

TEST(BfbTest, AllReduceHasTheHopsOfTableFive) {
  struct Row {
    const char* expression;
    int32_t tl;
  };
  for (const Row& row :
       {Row{"complete(5)", 2}, Row{"circulant(7,2,3)", 4}, Row{"bipartite(4)", 4},
        Row{"hamming(2,3)", 4}, Row{"circulant(11,2,3)", 4}, Row{"circulant(12,2,3)", 4}}) {
    SCOPED_TRACE(row.expression);
    const Topology topology = Parse(row.expression);
    const Schedule schedule =
        MustSynthesize(topology, MustCollective(CollectiveKind::kAllReduce, topology.num_ranks()));
    const StepCost cost = AnalyticCost(topology, schedule);
    EXPECT_EQ(cost.tl, row.tl);
    EXPECT_EQ(cost.tb, Rational(2) * OptimalTb(topology));
  }
}

// --- Oracle: loads from the definition, on random networks
// -----------------------------------------

Topology RandomNetwork(uint64_t seed, int32_t num_ranks, bool equal_links) {
  Random random(seed);
  Topology::Builder builder(num_ranks);
  const auto draw_spec = [&] {
    LinkSpec spec;
    if (equal_links) return spec;
    spec.bandwidth = static_cast<int64_t>(1 + random.Below(4)) * 5'000'000'000;
    spec.alpha_ps = static_cast<int64_t>(random.Below(3)) * 400'000;
    return spec;
  };
  for (int32_t rank = 0; rank < num_ranks; ++rank)
    builder.AddLink(NodeId{rank}, NodeId{(rank + 1) % num_ranks}, draw_spec());
  for (uint64_t left = random.Below(static_cast<uint64_t>(3 * num_ranks)); left > 0; --left) {
    const auto tail = static_cast<int32_t>(random.Below(static_cast<uint64_t>(num_ranks)));
    const auto hop = static_cast<int32_t>(1 + random.Below(static_cast<uint64_t>(num_ranks - 1)));
    builder.AddLink(NodeId{tail}, NodeId{(tail + hop) % num_ranks}, draw_spec());  // parallels too
  }
  return *std::move(builder).Build();
}

// Sum over the steps of the largest load, straight from (1) and theorem 19, with all distances.
Rational TbByDefinition(const Topology& topology) {
  std::vector<std::vector<int32_t>> distance;
  for (NodeId rank : topology.Ranks()) distance.push_back(DistancesFrom(topology.graph(), rank));
  Rational sum;
  for (int32_t step = 1; step < topology.num_ranks(); ++step) {
    Rational worst;
    for (NodeId u : topology.Ranks()) {
      const auto links = topology.InLinks(u);
      for (uint64_t set = 1; set < uint64_t{1} << links.size(); ++set) {
        int64_t sources = 0;
        for (NodeId v : topology.Ranks()) {
          if (distance[v.index()][u.index()] != step) continue;
          bool within = true;
          for (size_t i = 0; i < links.size(); ++i)
            if (distance[v.index()][topology.tail(links[i]).index()] == step - 1)
              within = within && (set >> i & 1) != 0;
          sources += within ? 1 : 0;
        }
        worst = std::max(worst, Rational(sources, std::popcount(set)));
      }
    }
    sum += worst;
  }
  return sum * Rational(topology.max_in_bandwidth(), topology.bandwidth(LinkId{0})) /
         Rational(topology.num_ranks());
}

TEST(BfbTest, AgreesWithTheDefinitionOnRandomNetworks) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = RandomNetwork(seed, static_cast<int32_t>(2 + seed % 6), true);
    const StepCost cost = MustCostOfSchedule(topology);
    EXPECT_EQ(cost.tb, TbByDefinition(topology));
    EXPECT_TRUE(MustCost(topology).exact);
  }
}

// --- Whole chunks (E.2)
// ----------------------------------------------------------------------------

// d (d^D - 1) / ((d - 1) P N), of theorem 20.
Rational ChunkBound(const Topology& topology, int32_t steps, int32_t chunks) {
  const int64_t degree = *topology.regular_degree();
  Rational sum, power(1);
  for (int32_t step = 0; step < steps; ++step) {
    sum += power;
    power *= Rational(degree);
  }
  return sum * Rational(degree) / Rational(int64_t{chunks} * topology.num_ranks());
}

TEST(BfbTest, ChunksAreWithinTheBoundOfTheoremTwenty) {
  for (const char* expression : {"torus(3,4)", "hypercube(4)", "genkautz(3,17)",
                                 "circulant(11,2,3)", "kautz(2,3)", "hamming(2,4)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const Rational exact = *MustCost(topology).tb;
    Rational last;
    for (int32_t chunks : {1, 2, 3, 5, 16}) {
      SynthOptions options;
      options.chunks = chunks;
      const StepCost cost = MustCostOfSchedule(topology, options);
      EXPECT_EQ(MustCost(topology, options).units_per_shard, chunks);
      EXPECT_GE(cost.tb, exact);
      EXPECT_LE(cost.tb, exact + ChunkBound(topology, cost.tl, chunks));
      EXPECT_EQ(MustCost(topology, options).exact, cost.tb == exact);
    }
  }
}

TEST(BfbTest, TheDefaultNumberOfUnitsIsTheSmallestThatIsExact) {
  for (const char* expression : {"torus(3,4)", "hypercube(4)", "genkautz(4,23)", "bipartite(3)",
                                 "circulant(12,2,3)", "debruijn(3,2)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const BfbCost best = MustCost(topology);
    EXPECT_TRUE(best.exact);
    for (int32_t chunks = 1; chunks < best.units_per_shard; ++chunks) {
      SynthOptions options;
      options.chunks = chunks;
      EXPECT_GT(*MustCost(topology, options).tb, *best.tb);
    }
  }
}

// --- Unequal links (E.3) and irregular networks
// ----------------------------------------------------

TEST(BfbTest, IrregularAndPuncturedNetworksAreProven) {
  for (const char* expression :
       {"without(torus(3,3,3),links=3,seed=1)", "without(torus(3,3,3,2),links=5,seed=2)",
        "without(hypercube(5),links=4,nodes=2,seed=3)", "mesh(3,4)", "mesh(2,3,4)", "dgx1",
        "without(genkautz(4,30),links=6,seed=4)", "debruijn(2,4)", "transpose(genkautz(3,14))",
        "unwind(switch(6),degree=2)", "twisted_hypercube(4)"}) {
    SCOPED_TRACE(expression);
    MustCostOfSchedule(Parse(expression));
  }
}

TEST(BfbTest, UnequalBandwidthsAreBalancedByBandwidth) {
  // Along the first dimension 60 GB/s, along the second 30: rank 0 of a 2 x 2 ring of cables gets
  // the far shard 2/3 over the fast and 1/3 over the slow link.
  const Topology topology = Parse("torus(2,2,bw=[60,30]GB/s)");
  const Schedule schedule = MustSynthesize(topology, AllGather(topology));
  EXPECT_EQ(schedule.units_per_shard, 3);
  const StepCost cost = AnalyticCost(topology, schedule);
  // In shards over 30 GB/s: 1 + 1/3; in M/B with B = 90 GB/s and M = 4 shards: x 3 / 4.
  EXPECT_EQ(cost.tb, Rational(1));
  EXPECT_EQ(cost.tb, *MustCost(topology).tb);
}

TEST(BfbTest, UnequalLinksAreProvenAndCostWhatIsPredicted) {
  for (const char* expression :
       {"torus(3,4,bw=[35,80]GiB/s)", "torus(4,4,alpha=[0.5,5]us)",
        "torus(3,3,2,bw=[35,80,50]GB/s,alpha=[0.5,1,0.7]us)", "hypercube(3,bw=50GB/s)",
        "rfs(2,4,1,bw=[200,100,50]GB/s)", "dragonfly(4,3,bw=[100,25]GB/s)"}) {
    SCOPED_TRACE(expression);
    for (const int64_t size : {int64_t{1} << 12, int64_t{1} << 20, int64_t{1} << 30}) {
      SynthOptions options;
      options.size_bytes = size;
      MustCostOfSchedule(Parse(expression), options);
      options.chunks = 4;
      MustCostOfSchedule(Parse(expression), options);
    }
  }
}

TEST(BfbTest, UnequalLinksOnRandomNetworksCostWhatIsPredicted) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = RandomNetwork(seed, static_cast<int32_t>(2 + seed % 6), false);
    SynthOptions options;
    options.size_bytes = int64_t{1} << (10 + seed % 12);
    MustCostOfSchedule(topology, options);
    // More freedom can only help: whole chunks are never faster than what is exact.
    const BfbCost best = MustCost(topology, options);
    options.chunks = 3;
    const BfbCost whole = MustCost(topology, options);
    if (best.exact) {
      EXPECT_LE(best.seconds, whole.seconds);
    }
  }
}

TEST(BfbTest, LinkWhoseAlphaDominatesCarriesNothing) {
  // Rank 3 hears rank 0 through 1 at once and through 2 only after a long wait.
  Topology::Builder builder(4);
  const LinkSpec good{50'000'000'000, 500'000}, slow{50'000'000'000, 900'000'000};
  builder.AddDuplex(NodeId{0}, NodeId{1}, good);
  builder.AddDuplex(NodeId{0}, NodeId{2}, good);
  builder.AddDuplex(NodeId{1}, NodeId{3}, good);
  builder.AddLink(NodeId{2}, NodeId{3}, slow);
  builder.AddLink(NodeId{3}, NodeId{2}, good);
  const Topology topology = *std::move(builder).Build();
  SynthOptions options;
  options.size_bytes = 4096;
  const Schedule schedule = MustSynthesize(topology, AllGather(topology), options);
  int32_t over_slow = 0, of_rank_0 = 0;
  for (const Transfer& transfer : schedule.transfers) {
    if (topology.alpha_ps(transfer.link) != slow.alpha_ps) continue;
    ++over_slow;
    of_rank_0 += transfer.shard.value == 0 ? 1 : 0;
  }
  EXPECT_EQ(of_rank_0, 0);
  EXPECT_EQ(over_slow, 1);  // rank 2's own shard is one hop away: only this link brings it in time
}

// --- What callers rely on
// --------------------------------------------------------------------------

TEST(BfbTest, ScheduleDoesNotDependOnTheNumberOfThreads) {
  for (const char* expression :
       {"torus(6,7)", "hypercube(7)", "genkautz(4,200)", "genkautz(16,200)", "bipartite(40)",
        "torus(5,6,bw=[35,80]GB/s)", "without(torus(4,4,4),links=7,seed=5)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    SetNumThreads(1);
    const Schedule alone = MustSynthesize(topology, AllGather(topology));
    for (const int threads : {2, 4}) {
      SetNumThreads(threads);
      EXPECT_EQ(MustSynthesize(topology, AllGather(topology)), alone);
    }
    SetNumThreads(0);
  }
}

TEST(BfbTest, SwitchesAreRefusedWithTheWayOut) {
  const Topology topology = Parse("switch(4)");
  const Result<Schedule> schedule = MakeBfb(topology, AllGather(topology), {});
  ASSERT_FALSE(schedule.has_value());
  EXPECT_EQ(schedule.error().code, ErrorCode::kInfeasible);
  EXPECT_NE(schedule.error().message.find("unwind"), std::string::npos) << schedule.error().message;
  EXPECT_FALSE(ComputeBfbCost(topology, AllGather(topology), {}).has_value());
}

TEST(BfbTest, WrongInputIsNamed) {
  const Topology ring = Parse("ring(4)");
  SynthOptions negative, empty;
  negative.chunks = -2;
  empty.size_bytes = 0;
  struct Case {
    Result<Schedule> got;
    const char* message;
  };
  for (const Case& bad :
       {Case{MakeBfb(ring, AllGather(ring), negative), "chunks must be >= 0, got -2"},
        Case{MakeBfb(ring, AllGather(ring), empty), "size must be >= 1 byte, got 0"},
        Case{MakeBfb(ring, MustCollective(kAllGather, 5), {}), "for 5 ranks, the network has 4"},
        Case{MakeBfb(ring, MustCollective(CollectiveKind::kGather, 4), {}), "not gather"}}) {
    ASSERT_FALSE(bad.got.has_value());
    EXPECT_EQ(bad.got.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(bad.got.error().message.find(bad.message), std::string::npos)
        << bad.got.error().message;
  }
}

TEST(BfbTest, AScheduleLargerThanTheMachineIsRefusedBeforeTheWork) {
  const Topology topology = Parse("ring(1000000)");
  const Result<Schedule> schedule = MakeBfb(topology, AllGather(topology), {});
  ASSERT_FALSE(schedule.has_value());
  EXPECT_EQ(schedule.error().code, ErrorCode::kResourceExhausted);
}

TEST(BfbTest, InterruptionEndsTheWork) {
  const Topology topology = Parse("torus(8,8)");
  RequestCancel();
  const Result<Schedule> schedule = MakeBfb(topology, AllGather(topology), {});
  ResetCancel();
  ASSERT_FALSE(schedule.has_value());
  EXPECT_EQ(schedule.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace tutti

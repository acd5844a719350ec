// Other collectives derived from an all-gather or broadcast, on networks of each kind: every cable
// two-way, isomorphic to the transpose, and neither.

#include <gtest/gtest.h>

#include <string>

#include "bfb_testing.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/bfb.h"

namespace tutti {
namespace {

constexpr const char* kNetworks[] = {
    "ring(7)",       "torus(3,4)",      "torus(2,3,bw=[35,80]GB/s)",
    "uniring(1,5)",  "uniring(2,6)",    "kautz(2,2)",
    "kautz(3,2)",    "genkautz(2,9)",   "genkautz(4,23)",
    "debruijn(2,3)", "dircirculant(3)", "transpose(genkautz(3,11))",
    "dgx1",          "mesh(3,3)",       "without(genkautz(4,20),links=5,seed=3)",
    "hypercube(4)",  "ring(2)",
};

StepCost CostOf(const Topology& topology, const Collective& collective) {
  return AnalyticCost(topology, MustSynthesize(topology, collective));
}

TEST(DeriveTest, EveryCollectiveIsProvenOnEveryKindOfNetwork) {
  for (const char* expression : kNetworks) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
      SCOPED_TRACE(Name(kind));
      const Schedule schedule =
          MustSynthesize(topology, MustCollective(kind, topology.num_ranks()));
      EXPECT_EQ(schedule.collective.kind(), kind);
    }
    for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce})
      for (int32_t root = 0; root < topology.num_ranks(); root += 3) {
        SCOPED_TRACE(std::string(Name(kind)) + " root " + std::to_string(root));
        MustSynthesize(topology, MustCollective(kind, topology.num_ranks(), root));
      }
  }
}

TEST(DeriveTest, AllReduceOverOneShardIsProven) {
  for (const char* expression : {"torus(3,3)", "genkautz(2,9)", "uniring(1,4)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    Collective::Options options;
    options.all_reduce_shards = 1;
    MustSynthesize(topology,
                   *Collective::Make(CollectiveKind::kAllReduce, topology.num_ranks(), options));
  }
}

TEST(DeriveTest, CostsOfHalvesAddUp) {
  for (const char* expression : kNetworks) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const int32_t n = topology.num_ranks();
    const StepCost gather = CostOf(topology, MustCollective(CollectiveKind::kAllGather, n));
    const StepCost scatter = CostOf(topology, MustCollective(CollectiveKind::kReduceScatter, n));
    const StepCost both = CostOf(topology, MustCollective(CollectiveKind::kAllReduce, n));
    EXPECT_EQ(both.tl, gather.tl + scatter.tl);
    EXPECT_EQ(both.tb, gather.tb + scatter.tb);
    EXPECT_EQ(gather.tl, scatter.tl);
  }
}

// Theorems 1 and 2: where the network is its own reverse, so are the costs.
TEST(DeriveTest, AllReduceCostsTwiceTheAllGatherOnReverseSymmetricNetworks) {
  for (const char* expression :
       {"ring(7)", "torus(3,4)", "uniring(1,5)", "kautz(2,2)", "kautz(3,2)", "debruijn(2,3)",
        "dircirculant(3)", "hypercube(4)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const int32_t n = topology.num_ranks();
    EXPECT_EQ(CostOf(topology, MustCollective(CollectiveKind::kAllReduce, n)).tb,
              Rational(2) * CostOf(topology, MustCollective(CollectiveKind::kAllGather, n)).tb);
  }
}

TEST(DeriveTest, ReduceScatterOfTheTransposeCostsWhatTheAllGatherCosts) {  // Corollary 1.1
  for (const char* network : {"genkautz(2,9)", "genkautz(4,23)", "genkautz(3,14)"}) {
    SCOPED_TRACE(network);
    const Topology topology = Parse(network);
    const Topology transpose = Parse("transpose(" + std::string(network) + ")");
    const int32_t n = topology.num_ranks();
    const StepCost gather = CostOf(topology, MustCollective(CollectiveKind::kAllGather, n));
    const StepCost scatter = CostOf(transpose, MustCollective(CollectiveKind::kReduceScatter, n));
    EXPECT_EQ(gather.tl, scatter.tl);
    EXPECT_EQ(gather.tb, scatter.tb);
  }
}

// How often the maker is asked: once where the network can be turned around in place.
TEST(DeriveTest, AMirrorSavesTheSecondSynthesis) {
  struct Row {
    const char* network;
    int32_t calls;
  };
  for (const Row& row :
       {Row{"ring(5)", 1}, Row{"kautz(2,2)", 1}, Row{"uniring(2,5)", 1}, Row{"genkautz(2,9)", 2}}) {
    SCOPED_TRACE(row.network);
    const Topology topology = Parse(row.network);
    const int32_t n = topology.num_ranks();
    int32_t calls = 0;
    const Collective all_reduce = MustCollective(CollectiveKind::kAllReduce, n);
    const Result<Schedule> schedule = DeriveFromForward(
        topology, all_reduce, [&calls](const Topology& network, const Collective& forward) {
          ++calls;
          return MakeBfb(network, forward, {});
        });
    ASSERT_TRUE(schedule.has_value());
    EXPECT_TRUE(Verify(topology, all_reduce, *schedule).verified());
    EXPECT_EQ(calls, row.calls);
  }
}

TEST(DeriveTest, WhatIsNotDerivedIsRefused) {
  const Topology topology = Parse("ring(4)");
  const Result<Schedule> schedule =
      DeriveFromForward(topology, MustCollective(CollectiveKind::kAllToAll, 4),
                        [](const Topology&, const Collective&) -> Result<Schedule> {
                          return InvalidArgument("not reached");
                        });
  ASSERT_FALSE(schedule.has_value());
  EXPECT_NE(schedule.error().message.find("all-to-all"), std::string::npos);
}

TEST(DeriveTest, AFailureOfTheMakerComesThrough) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce})
    for (const char* network : {"ring(4)", "genkautz(2,9)"}) {
      const Topology topology = Parse(network);
      const Result<Schedule> schedule =
          DeriveFromForward(topology, MustCollective(kind, topology.num_ranks()),
                            [](const Topology&, const Collective&) -> Result<Schedule> {
                              return MakeError(ErrorCode::kInfeasible, "no way");
                            });
      ASSERT_FALSE(schedule.has_value());
      EXPECT_EQ(schedule.error().message, "no way");
    }
}

}  // namespace
}  // namespace tutti

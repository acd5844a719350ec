// step-lp: the least TB of so many steps, against schedules found otherwise and trees by brute force.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "step_lp/step_program.h"
#include "step_lp/step_trees.h"
#include "support/build.h"
#include "support/digraphs.h"
#include "tutti/base/random.h"
#include "unit/synth/classic_support.h"

namespace tutti {
namespace {

using classic_test::Algorithm;
using step_lp::StepShares;
using step_lp::StepTrees;
using test_support::MustBuild;
using test_support::Parse;
using ::testing::HasSubstr;

Topology StepDigraph(uint64_t seed, int32_t most_ranks) {
  return test_support::RandomDigraph(seed,
                                     {.least_ranks = 3, .most_ranks = most_ranks, .bandwidths = 3});
}

// The cheapest tree by trying for every rank every link and step into it.
int64_t CheapestByAll(const Topology& topology, int32_t steps, NodeId source,
                      const std::vector<int64_t>& lengths) {
  constexpr int32_t kNever = 1 << 20;
  std::vector<int32_t> told(static_cast<size_t>(topology.num_ranks()), kNever);
  std::vector<std::pair<LinkId, int32_t>> into(told.size(), {LinkId{0}, 0});
  int64_t best = -1;
  const std::function<void(int32_t, int64_t)> choose = [&](int32_t rank, int64_t length) {
    if (best >= 0 && length >= best) return;
    if (rank == topology.num_ranks()) {
      for (NodeId node : topology.Ranks())
        if (node != source) {
          const NodeId tail = topology.tail(into[node.index()].first);
          if (tail != source && into[tail.index()].second >= into[node.index()].second) return;
        }
      best = length;
      return;
    }
    if (NodeId{rank} == source) return choose(rank + 1, length);
    for (LinkId link : topology.InLinks(NodeId{rank}))
      for (int32_t step = 0; step < steps; ++step) {
        into[static_cast<size_t>(rank)] = {link, step};
        choose(rank + 1,
               length + lengths[static_cast<size_t>(step * topology.num_links() + link.value)]);
      }
  };
  choose(0, 0);
  return best;
}

TEST(StepTreesTest, AreTheCheapestOfAll) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = StepDigraph(seed, 5);
    Random random(seed + 1000);
    for (int32_t steps = 1; steps <= 4; ++steps) {
      std::vector<int64_t> lengths;
      for (int32_t i = 0; i < steps * topology.num_links(); ++i)
        lengths.push_back(static_cast<int64_t>(random.Below(20)));
      StepTrees trees(topology, steps);
      for (NodeId source : topology.Ranks()) {
        const auto found = trees.Cheapest(source, lengths, 0);
        const int64_t wanted = CheapestByAll(topology, steps, source, lengths);
        ASSERT_EQ(found.has_value(), wanted >= 0);
        if (!found) continue;
        EXPECT_EQ(found->length, wanted);
        EXPECT_EQ(found->tree.size(), static_cast<size_t>(topology.num_ranks() - 1));
        int64_t length = 0;
        for (const step_lp::StepBranch& branch : found->tree)
          length +=
              lengths[static_cast<size_t>(branch.step * topology.num_links() + branch.link.value)];
        EXPECT_EQ(length, wanted);
        const auto narrow = trees.Cheapest(source, lengths, 1);
        if (narrow) {
          EXPECT_GE(narrow->length, wanted);
        }
      }
    }
  }
}

StepShares MustSolve(const Topology& topology, int32_t steps) {
  Result<StepShares> shares = step_lp::SolveStepProgram(topology, steps);
  EXPECT_TRUE(shares.has_value()) << (shares ? "" : shares.error().message);
  return *std::move(shares);
}

// uniring(1,3): in one step nothing reaches the second next rank; in two each link passes one shard
// a step, 2 / 3 of M/B. More steps change nothing.
TEST(StepProgramTest, ByHand) {
  const Topology ring = Parse("uniring(1,3)");
  EXPECT_FALSE(step_lp::SolveStepProgram(ring, 1).has_value());
  for (const int32_t steps : {2, 3}) EXPECT_EQ(MustSolve(ring, steps).tb, Rational(2, 3));
  // Three ranks in a path of cables: in two steps the ends' shards pass the middle after they came,
  // one at a time over links of half a rank's bandwidth: 2 (1/3 + 1/3) of M/B, as the cut says.
  EXPECT_EQ(MustSolve(Parse("mesh(3)"), 2).tb, Rational(4, 3));
}

// bfb moves least of all that follow shortest paths in as many steps as hops; so does step-lp of
// all schedules, and on these networks no other does better.
TEST(StepProgramTest, NeverMovesMoreThanBfb) {
  for (const char* text : {"ring(5)", "ring(6)", "mesh(2,3)", "mesh(3,3)", "hypercube(3)",
                           "torus(3,3)", "genkautz(2,7)", "genkautz(2,9)", "complete(5)",
                           "bipartite(3)", "dircirculant(2)", "kautz(2,2)"}) {
    SCOPED_TRACE(text);
    const Topology topology = Parse(text);
    const Collective collective =
        *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
    const Result<Schedule> bfb = RunSynthesizer(Algorithm("bfb"), topology, collective, {});
    ASSERT_TRUE(bfb.has_value());
    const StepCost cost = AnalyticCost(topology, *bfb);
    const StepShares shares = MustSolve(topology, cost.tl);
    EXPECT_LE(shares.tb, cost.tb);
    EXPECT_TRUE(shares.proven()) << shares.tb.ToString() << " " << shares.proof.tb.ToString();
    EXPECT_EQ(step_lp::ProvenTb(topology, cost.tl, shares.proof.lengths, shares.translations),
              shares.proof.tb);
    EXPECT_GE(shares.tb, ComputeBounds(topology, collective)->tb);
  }
}

TEST(StepProgramProperty, SharesAndProofsOfRandomNetworks) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = StepDigraph(seed, 7);
    const Collective collective =
        *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
    const Bounds bounds = *ComputeBounds(topology, collective);
    Rational before;
    for (int32_t steps = bounds.steps; steps < bounds.steps + 3; ++steps) {
      const StepShares shares = MustSolve(topology, steps);
      EXPECT_GE(shares.tb, bounds.tb);
      EXPECT_LE(shares.proof.tb, shares.tb);
      EXPECT_GE(shares.proof.tb, shares.tb * Rational(999'999, 1'000'000));
      EXPECT_EQ(step_lp::ProvenTb(topology, steps, shares.proof.lengths, shares.translations),
                shares.proof.tb);
      if (steps > bounds.steps) {
        EXPECT_LE(shares.tb, before);
      }
      before = shares.tb;
      std::map<int32_t, Rational> of_root;
      for (const StepShares::Part& part : shares.parts) {
        EXPECT_GT(part.share, Rational(0));
        of_root[part.root.value] += part.share;
      }
      for (const auto& [root, sum] : of_root) EXPECT_EQ(sum, Rational(1));
    }
  }
}

// A certificate that is spoiled proves something else, never more than is true.
TEST(StepProgramProperty, AnyLengthsProveNoMoreThanTheOptimum) {
  const Topology topology = Parse("mesh(2,3)");
  const StepShares shares = MustSolve(topology, 4);
  ASSERT_TRUE(shares.proven());
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::vector<int64_t> lengths = shares.proof.lengths;
    for (int change = 0; change < 3; ++change)
      lengths[random.Below(lengths.size())] = static_cast<int64_t>(random.Below(50));
    EXPECT_LE(step_lp::ProvenTb(topology, 4, lengths, shares.translations), shares.tb) << seed;
  }
}

struct Ran {
  Schedule schedule;
  SynthNotes notes;
};

Ran MustRunStepLp(const Topology& topology, CollectiveKind kind, SynthOptions options) {
  SynthNotes notes;
  options.notes = &notes;
  const Collective collective = *Collective::Make(kind, topology.num_ranks());
  Result<Schedule> made = RunSynthesizer(Algorithm("step-lp"), topology, collective, options);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  classic_test::ExpectSound("step-lp", topology, collective, *made);
  return {*std::move(made), notes};
}

// [direct-connect] Table 9's schedules by search are optimal both ways; the program finds their TB
// in as many steps. What the exact shares are in chunks may be too fine: then some loss is left.
TEST(StepLpTest, FindsTheStoredSchedulesCosts) {
  for (const auto& [text, steps] :
       std::vector<std::pair<std::string, int32_t>>{{"diamond", 3}, {"debruijn_mod(2,3)", 4}}) {
    SCOPED_TRACE(text);
    const Topology topology = Parse(text);
    const Rational best(topology.num_ranks() - 1, topology.num_ranks());
    const Ran ran = MustRunStepLp(topology, CollectiveKind::kAllGather, {.steps = steps});
    EXPECT_LE(AnalyticCost(topology, ran.schedule).tb, best * Rational(101, 100));
    ASSERT_EQ(ran.notes.frontier.size(), 1u);
    EXPECT_EQ(ran.notes.frontier[0].tb, best);
    EXPECT_EQ(ran.notes.frontier[0].tb_limit, best);
    EXPECT_LT(ran.notes.gap, 0.01);
  }
}

TEST(StepLpSlow, FindsTheStoredSchedulesCostsOfSixteenRanks) {
  const Topology topology = Parse("debruijn_mod(4,2)");
  const Ran ran = MustRunStepLp(topology, CollectiveKind::kAllGather, {.steps = 3});
  EXPECT_EQ(ran.notes.frontier.at(0).tb, Rational(15, 16));
  EXPECT_EQ(ran.notes.frontier.at(0).tb_limit, Rational(15, 16));
  EXPECT_LE(AnalyticCost(topology, ran.schedule).tb, Rational(15, 16) * Rational(102, 100));
}

TEST(StepLpTest, TheFrontierAscendsAndSizesChooseFromIt) {
  const Topology topology = Parse("genkautz(2,7)");
  const Ran small = MustRunStepLp(topology, CollectiveKind::kAllGather, {.size_bytes = 1});
  const Ran large =
      MustRunStepLp(topology, CollectiveKind::kAllGather, {.size_bytes = int64_t{1} << 40});
  ASSERT_FALSE(small.notes.frontier.empty());
  for (size_t i = 0; i < small.notes.frontier.size(); ++i) {
    const StepPoint& point = small.notes.frontier[i];
    EXPECT_EQ(point.tb, point.tb_limit);
    EXPECT_EQ(point.tb, large.notes.frontier[i].tb);
    if (i == 0) continue;
    EXPECT_GT(point.tl, small.notes.frontier[i - 1].tl);
    EXPECT_LT(point.tb, small.notes.frontier[i - 1].tb);
  }
  EXPECT_EQ(small.schedule.num_steps, small.notes.frontier.front().tl);
  EXPECT_EQ(large.schedule.num_steps, large.notes.frontier.back().tl);
}

TEST(StepLpTest, ReducesAndKeepsToChunksAskedFor) {
  for (const char* text : {"ring(5)", "genkautz(2,5)", "mesh(2,3)"}) {
    SCOPED_TRACE(text);
    const Topology topology = Parse(text);
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce})
      EXPECT_EQ(MustRunStepLp(topology, kind, {.chunks = 3}).schedule.units_per_shard, 3);
    EXPECT_LE(MustRunStepLp(topology, CollectiveKind::kAllGather, {.max_chunks = 2})
                  .schedule.units_per_shard,
              2);
  }
}

TEST(StepLpTest, SaysWhatItCannot) {
  struct Row {
    const char* network;
    int32_t steps;
    const char* message;
  };
  for (const Row& row : std::vector<Row>{{"switch(4)", 0, "knows no switches"},
                                         {"ring(4,host_bw=1GB/s)", 0, "knows no host limits"},
                                         {"ring(17)", 0, "there may be 16; the network has 17"},
                                         {"ring(16)", 40, "too long for 16 ranks and 40 steps"},
                                         {"ring(6)", 2, "2 steps are too few"}}) {
    SCOPED_TRACE(row.network);
    const Topology topology = Parse(row.network);
    const Result<Schedule> made = RunSynthesizer(
        Algorithm("step-lp"), topology,
        *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks()), {.steps = row.steps});
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, ErrorCode::kInfeasible);
    EXPECT_THAT(made.error().message, HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace tutti

// What expansions are predicted to cost and to be, against the networks themselves.
#include "candidate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "search.h"
#include "tutti/coll/collective.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti::design {
namespace {

void ExpectTrue(const Candidate& candidate) {
  SCOPED_TRACE(candidate.recipe);
  const Result<Topology> topology = ParseTopology(candidate.recipe);
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->num_ranks(), candidate.ranks);
  EXPECT_EQ(topology->regular_degree(), std::optional<int32_t>(candidate.degree));
  EXPECT_EQ(IsBidirectional(*topology), candidate.has(kBidirectional));
  if (candidate.diameter_exact) {
    EXPECT_EQ(Diameter(*topology), candidate.diameter);
  } else {
    EXPECT_LE(Diameter(*topology), candidate.diameter);
  }
  if (candidate.has(kReverseSymmetric)) {
    EXPECT_EQ(FindReverseSymmetry(*topology).outcome, IsomorphismSearch::Outcome::kFound);
  }
  bool loops = false;
  for (NodeId node : topology->Nodes()) loops = loops || !topology->self_loops(node).empty();
  EXPECT_EQ(candidate.has(kNoSelfLoops), !loops);
  if (!candidate.has(kByBfb)) return;
  const Result<BfbCost> cost =
      ComputeBfbCost(*topology, *Collective::Make(CollectiveKind::kAllGather, candidate.ranks), {});
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->tl, candidate.tl);
  EXPECT_EQ(cost->tb, std::optional<Rational>(candidate.tb));
  const Result<BfbCost> back =
      ComputeBfbCost(TransposeTopology(*topology),
                     *Collective::Make(CollectiveKind::kAllGather, candidate.ranks), {});
  ASSERT_TRUE(back);
  EXPECT_EQ(back->tl, candidate.reduce_scatter.tl);
  EXPECT_EQ(back->tb, std::optional<Rational>(candidate.reduce_scatter.tb));
}

TEST(Candidates, ThatTheSearchKeepsAreTrue) {
  Search search;
  for (int32_t degree = 1; degree <= 6; ++degree)
    for (int32_t ranks = 2; ranks <= 40; ++ranks)
      for (const Candidate* candidate : search.All(ranks, degree).candidates())
        ExpectTrue(*candidate);
}

// One of each expansion of every base, whether or not it would win.
TEST(Candidates, ExpansionsOfBasesAreTrue) {
  for (int32_t degree = 1; degree <= 4; ++degree)
    for (int32_t ranks = 2; ranks <= 12; ++ranks)
      for (const BaseFamily& family : BaseFamilies()) {
        std::vector<BaseEntry> entries;
        family.list(ranks, degree, entries);
        for (size_t i = entries.size(); i-- > 0;)
          if (entries[i].reduce_scatter) entries.push_back(TransposeOf(entries[i]));
        for (const BaseEntry& entry : entries) {
          const Candidate base = MakeBase(entry, family.reference);
          ExpectTrue(base);
          if (CanLine(base)) {
            const Candidate line = MakeLine(base);
            ExpectTrue(line);
            if (CanLine(line)) ExpectTrue(MakeLine(line));
          }
          if (CanDegree(base)) ExpectTrue(MakeDegree(base, 2 + ranks % 2));
          if (base.has(kByExpand)) ExpectTrue(MakePower(base, 2));
          if (CanBidirectional(base)) ExpectTrue(MakeBidirectional(base));
          if (base.has(kFactor)) {
            const Candidate ring = MakeBase(
                [] {
                  std::vector<BaseEntry> rings;
                  ListRings(3, 1, rings);
                  return rings.at(0);
                }(),
                "");
            ExpectTrue(MakeProduct(base, ring));
            if (CanDegree(base)) {
              const Candidate more = MakeDegree(base, 2);
              if (more.has(kFactor)) ExpectTrue(MakeProduct(more, ring));
            }
          }
        }
      }
}

BaseEntry Only(void (*list)(int32_t, int32_t, std::vector<BaseEntry>&), int32_t ranks,
               int32_t degree) {
  std::vector<BaseEntry> entries;
  list(ranks, degree, entries);
  return entries.at(0);
}

TEST(Candidates, RecipesAreFlat) {
  const Candidate four = MakeBase(Only(ListRings, 4, 1), ""),
                  two = MakeBase(Only(ListRings, 2, 1), "");
  const Candidate cube = MakePower(four, 3);
  EXPECT_EQ(cube.recipe, "power(uniring(1,4),3)");
  const Candidate product = MakeProduct(two, cube);
  EXPECT_EQ(product.recipe, "product(power(uniring(1,4),3),uniring(1,2))");
  EXPECT_EQ(product.tl, 10);
  EXPECT_EQ(MakeProduct(four, four).recipe, "power(uniring(1,4),2)");
  const Candidate line = MakeLine(product);
  EXPECT_EQ(MakeLine(line).recipe, "line(product(power(uniring(1,4),3),uniring(1,2)),2)");
}

// Figure 1: K_{4,4} over links of degree 4, taken as a line digraph: 32 ranks in 3 steps and M/B.
TEST(Candidates, LineOfTheBipartiteGraph) {
  const Candidate line = MakeLine(MakeBase(Only(ListBipartite, 8, 4), ""));
  EXPECT_EQ(line.ranks, 32);
  EXPECT_EQ(line.tl, 3);
  EXPECT_EQ(line.tb, Rational(1));
}

// circulant(7,2,3) doubled: theorem 11 says 3 steps, breadth-first broadcast takes 2.
TEST(Candidates, CopiesOfBidirectionalNetworksCostNoStepUnderBreadthFirstBroadcast) {
  const Candidate degree = MakeDegree(MakeBase(Only(ListCirculant, 7, 4), ""), 2);
  EXPECT_EQ(degree.tl, 2);
  EXPECT_EQ(degree.tb, BestTb(14));
  EXPECT_TRUE(degree.has(kByBfb | kFactor));
  EXPECT_FALSE(degree.has(kByExpand));
  ExpectTrue(degree);
}

Candidate Plain(int32_t tl, Rational tb, uint32_t properties, std::string recipe) {
  Candidate candidate;
  candidate.tl = candidate.diameter = tl;
  candidate.tb = tb;
  candidate.reduce_scatter = {tl, std::move(tb)};
  candidate.properties = properties;
  candidate.recipe = std::move(recipe);
  return candidate;
}

TEST(Frontier, KeepsWhatMayStillWin) {
  std::deque<Candidate> arena;
  Frontier frontier;
  const auto kept = [&] {
    std::string names;
    for (const Candidate* candidate : frontier.candidates()) names += candidate->recipe;
    return names;
  };
  frontier.Offer(Plain(3, Rational(1), kByExpand, "b"), arena);
  frontier.Offer(Plain(3, Rational(2), kByExpand, "c"), arena);  // worse
  EXPECT_EQ(kept(), "b");
  frontier.Offer(Plain(4, Rational(1, 2), kByExpand, "d"), arena);  // less bandwidth time
  EXPECT_EQ(kept(), "bd");
  frontier.Offer(Plain(4, Rational(3), kByExpand | kBidirectional, "e"),
                 arena);  // a class of its own
  EXPECT_EQ(kept(), "bde");
  frontier.Offer(Plain(3, Rational(1), kByExpand, "a"), arena);  // as good, first in the alphabet
  EXPECT_EQ(kept(), "ade");
  const DesignCost slower{4, Rational(1)}, faster{2, Rational(1, 4)};
  EXPECT_FALSE(frontier.Wants(slower, slower, kByExpand));
  EXPECT_TRUE(frontier.Wants(slower, slower, kByBfb));
  EXPECT_TRUE(frontier.Wants(slower, faster, kByExpand));  // its reduce-scatter is faster
  frontier.Offer(Plain(2, Rational(1, 3), kByExpand | kBidirectional, "x"), arena);  // beats all
  EXPECT_EQ(kept(), "x");
}

}  // namespace
}  // namespace tutti::design

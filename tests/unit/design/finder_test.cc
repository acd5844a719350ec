#include "tutti/design/finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/parallel.h"
#include "tutti/bounds/bounds.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti {
namespace {

std::vector<Design> Frontier(int32_t ranks, int32_t degree, bool bidirectional_only = false) {
  Result<std::vector<Design>> designs = FindFrontier(
      {.ranks = ranks, .degree = degree, .bidirectional_only = bidirectional_only, .bases = {}});
  EXPECT_TRUE(designs) << ranks << " " << degree << " " << designs.error().message;
  return designs ? *std::move(designs) : std::vector<Design>();
}

void ExpectSortedAndUndominated(const std::vector<Design>& designs) {
  for (size_t i = 1; i < designs.size(); ++i) {
    EXPECT_LT(designs[i - 1].tl, designs[i].tl);
    EXPECT_GT(designs[i - 1].tb, designs[i].tb);
  }
}

// Everything but the schedule.
void ExpectTrueOfNetwork(const Design& design) {
  SCOPED_TRACE(design.recipe);
  const Result<Topology> topology = ParseTopology(design.recipe);
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->num_ranks(), design.ranks);
  EXPECT_EQ(topology->regular_degree(), std::optional<int32_t>(design.degree));
  EXPECT_EQ(Diameter(*topology), design.diameter);
  EXPECT_EQ(IsBidirectional(*topology), design.bidirectional);
  EXPECT_GE(design.tl, MooreBoundSteps(design.ranks, design.degree));
  EXPECT_GE(design.tb, BestTb(design.ranks));
  EXPECT_GE(design.reduce_scatter.tl, MooreBoundSteps(design.ranks, design.degree));
  EXPECT_GE(design.reduce_scatter.tb, BestTb(design.ranks));
  EXPECT_FALSE(design.reasons.empty());
  if (design.reverse_symmetric) {
    EXPECT_EQ(FindReverseSymmetry(*topology).outcome, IsomorphismSearch::Outcome::kFound);
  }
}

// N = 4, d = 2 by hand: nothing does it in one step; two steps at the least time there is are those
// of the ring, whose farthest rank is heard of half over each link.
TEST(Finder, FourRanksByHand) {
  const std::vector<Design> designs = Frontier(4, 2);
  ASSERT_EQ(designs.size(), 1u);
  EXPECT_EQ(designs[0].tl, 2);
  EXPECT_EQ(designs[0].tb, Rational(3, 4));
}

TEST(Finder, FrontiersAreSortedAndTrue) {
  for (int32_t degree = 1; degree <= 6; ++degree)
    for (int32_t ranks = 2; ranks <= 40; ++ranks) {
      const std::vector<Design> designs = Frontier(ranks, degree);
      ASSERT_FALSE(designs.empty());
      ExpectSortedAndUndominated(designs);
      for (const Design& design : designs) ExpectTrueOfNetwork(design);
      EXPECT_EQ(designs.back().tb, BestTb(ranks)) << ranks << " " << degree;
    }
}

TEST(Finder, BidirectionalFrontiersHoldOnlyBidirectionalNetworks) {
  for (int32_t degree : {2, 3, 4, 6})
    for (int32_t ranks = 2; ranks <= 40; ++ranks) {
      if (ranks * degree % 2 != 0) continue;
      for (const Design& design : Frontier(ranks, degree, true)) {
        EXPECT_TRUE(design.bidirectional) << design.recipe;
        ExpectTrueOfNetwork(design);
      }
    }
}

TEST(Finder, AllSizesAtOnceAgreeWithOneAtATime) {
  for (int threads : {1, 3}) {
    SetNumThreads(threads);
    const Result<std::vector<SizedFrontier>> all = FindAllFrontiers({2, 4}, 150);
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 2u * 149);
    for (const SizedFrontier& sized : *all) {
      for (bool bidirectional : {false, true}) {
        const std::vector<Design> alone = Frontier(sized.ranks, sized.degree, bidirectional);
        std::vector<Design> together = bidirectional ? sized.bidirectional : sized.designs;
        ASSERT_TRUE(MeasureDiameters(together));
        ASSERT_EQ(together.size(), alone.size()) << sized.ranks << " " << sized.degree;
        for (size_t i = 0; i < alone.size(); ++i) {
          EXPECT_EQ(together[i].recipe, alone[i].recipe);
          EXPECT_EQ(together[i].tl, alone[i].tl);
          EXPECT_EQ(together[i].tb, alone[i].tb);
          EXPECT_EQ(together[i].diameter, alone[i].diameter);
        }
      }
    }
  }
  SetNumThreads(0);
}

// Each collective's frontier is that of its own cost, and what one of them has no other undercuts.
TEST(Finder, FrontiersAreOfTheirOwnCollective) {
  constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                       CollectiveKind::kAllReduce};
  int differing = 0;
  for (int32_t degree : {2, 4})
    for (int32_t ranks = 2; ranks <= 90; ++ranks) {
      std::vector<std::vector<Design>> frontiers;
      for (CollectiveKind kind : kKinds) {
        Result<std::vector<Design>> designs =
            FindFrontier({.ranks = ranks, .degree = degree, .collective = kind, .bases = {}});
        ASSERT_TRUE(designs);
        for (size_t i = 1; i < designs->size(); ++i) {
          EXPECT_LT((*designs)[i - 1].CostOf(kind).tl, (*designs)[i].CostOf(kind).tl);
          EXPECT_GT((*designs)[i - 1].CostOf(kind).tb, (*designs)[i].CostOf(kind).tb);
        }
        frontiers.push_back(*std::move(designs));
      }
      for (size_t k = 0; k < 3; ++k)
        for (const std::vector<Design>& others : frontiers)
          for (const Design& other : others)
            EXPECT_TRUE(std::any_of(frontiers[k].begin(), frontiers[k].end(),
                                    [&](const Design& design) {
                                      const DesignCost a = design.CostOf(kKinds[k]),
                                                       b = other.CostOf(kKinds[k]);
                                      return a.tl <= b.tl && a.tb <= b.tb;
                                    }))
                << other.recipe << " for " << Name(kKinds[k]);
      // An all-gather on the transpose is a reduce-scatter.
      ASSERT_EQ(frontiers[0].size(), frontiers[1].size());
      for (size_t i = 0; i < frontiers[0].size(); ++i)
        EXPECT_EQ(frontiers[0][i].CostOf(kKinds[0]), frontiers[1][i].CostOf(kKinds[1]));
      differing += frontiers[0][0].recipe != frontiers[2][0].recipe ? 1 : 0;
    }
  EXPECT_GT(differing, 0);
}

// The transpose of cayley(19,3,7,10,2,18,0) takes TB 1 in 7 steps, itself 20/19.
TEST(Finder, TransposesAreCandidates) {
  const std::vector<Design> designs = Frontier(57, 2);
  const auto seven = std::find_if(designs.begin(), designs.end(),
                                  [](const Design& design) { return design.tl == 7; });
  ASSERT_NE(seven, designs.end());
  EXPECT_EQ(seven->recipe, "transpose(cayley(19,3,7,10,2,18,0))");
  EXPECT_EQ(seven->tb, Rational(1));
  EXPECT_EQ(seven->reduce_scatter, (DesignCost{7, Rational(20, 19)}));
}

std::string FaultOf(const DesignQuestion& question) {
  const Result<std::vector<Design>> designs = FindFrontier(question);
  EXPECT_FALSE(designs);
  return designs ? "" : designs.error().message;
}

TEST(Finder, RefusesWhatItCannotAnswer) {
  const auto fault = [](int32_t ranks, int32_t degree, bool bidirectional_only = false) {
    return FaultOf(
        {.ranks = ranks, .degree = degree, .bidirectional_only = bidirectional_only, .bases = {}});
  };
  EXPECT_EQ(fault(8, 0), "degree 0: wanted 1 <= degree <= 64");
  EXPECT_EQ(fault(1, 2), "1 ranks: wanted at least 2");
  EXPECT_NE(fault(2'000'000'000, 4).find("GiB"), std::string::npos);
  EXPECT_NE(fault(7, 3, true).find("near are 6 or 8 ranks, or degree 4"), std::string::npos);
  EXPECT_NE(fault(4, 1, true).find("near are degree 2"), std::string::npos);
}

TEST(Finder, OwnBasesAreMeasuredAndExpanded) {
  // The Petersen graph: 10 ranks of degree 3, diameter 2, bandwidth-optimal.
  Topology::Builder builder(10);
  for (int32_t i = 0; i < 5; ++i) {
    builder.AddDuplex(NodeId{i}, NodeId{(i + 1) % 5}, {});
    builder.AddDuplex(NodeId{i}, NodeId{i + 5}, {});
    builder.AddDuplex(NodeId{i + 5}, NodeId{(i + 2) % 5 + 5}, {});
  }
  const Result<Topology> petersen = std::move(builder).Build();
  ASSERT_TRUE(petersen);
  const Result<std::vector<Design>> same = FindFrontier({.ranks = 10,
                                                         .degree = 3,
                                                         .bidirectional_only = false,
                                                         .bases = {{"petersen.json", *petersen}}});
  ASSERT_TRUE(same);
  EXPECT_EQ(same->back().recipe, "petersen.json");
  EXPECT_EQ(same->back().tl, 2);
  EXPECT_EQ(same->back().tb, BestTb(10));
  const Result<std::vector<Design>> larger =
      FindFrontier({.ranks = 30,
                    .degree = 3,
                    .bidirectional_only = false,
                    .bases = {{"petersen.json", *petersen}}});
  ASSERT_TRUE(larger);
  EXPECT_EQ(larger->front().tl, 3);
  EXPECT_EQ(larger->front().tb, Rational(1));
  for (const Design& design : *larger)
    EXPECT_NE(design.recipe.find("petersen.json"), std::string::npos) << design.recipe;
  EXPECT_EQ(FaultOf({.ranks = 31, .degree = 3, .bases = {{"petersen.json", *petersen}}}),
            "no network of 31 ranks with degree 3 can be made of petersen.json: expansions "
            "multiply its ranks and may add to its degree, which is 3");
}

// hamming(2,3) is among the known bases, and of the same cost as the asker's file: the answer is
// made of the file all the same.
TEST(Finder, OwnBasesWinOverKnownOnesOfTheSameCost) {
  const Result<Topology> hamming = ParseTopology("hamming(2,3)");
  ASSERT_TRUE(hamming);
  const Result<std::vector<Design>> designs =
      FindFrontier({.ranks = 36, .degree = 4, .bases = {{"box.json", *hamming}}});
  ASSERT_TRUE(designs);
  ASSERT_EQ(designs->size(), 1u);
  EXPECT_EQ(designs->front().recipe, "line(box.json)");
}

TEST(Finder, RefusesBasesThatExpansionsCannotUse) {
  Topology::Builder builder(3);
  builder.AddDuplex(NodeId{0}, NodeId{1}, {});
  builder.AddDuplex(NodeId{1}, NodeId{2}, {});
  const Result<Topology> path = std::move(builder).Build();
  ASSERT_TRUE(path);
  EXPECT_EQ(
      FaultOf(
          {.ranks = 9, .degree = 2, .bidirectional_only = false, .bases = {{"path.json", *path}}}),
      "base 'path.json': is not regular: rank 1 has 2 ports out and 2 in, rank 0 has 1 out; "
      "expansions need regular networks of equal links between ranks");
}

}  // namespace
}  // namespace tutti

// Counting over intervals against counting pairs (synth/bfb).
#include "genkautz.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tutti/base/random.h"
#include "tutti/bounds/bounds.h"
#include "tutti/coll/collective.h"
#include "tutti/design/finder.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"

namespace tutti::design {
namespace {

void ExpectLikeBfb(int32_t degree, int32_t ranks) {
  const std::string name = "genkautz(" + std::to_string(degree) + "," + std::to_string(ranks) + ")";
  const Result<Topology> topology = ParseTopology(name);
  ASSERT_TRUE(topology) << name;
  const Result<Collective> collective = Collective::Make(CollectiveKind::kAllGather, ranks);
  const Result<BfbCost> expected = ComputeBfbCost(*topology, *collective, {});
  ASSERT_TRUE(expected) << name;
  const GenkautzCost cost = ComputeGenkautzCost(degree, ranks);
  EXPECT_EQ(cost.tl, expected->tl) << name;
  EXPECT_EQ(std::optional<Rational>(cost.tb), expected->tb) << name << " " << cost.tb.ToString();
  const Result<BfbCost> back = ComputeBfbCost(TransposeTopology(*topology), *collective, {});
  ASSERT_TRUE(back) << name;
  EXPECT_EQ(cost.tl, back->tl) << name;
  EXPECT_EQ(std::optional<Rational>(cost.reduce_scatter_tb), back->tb)
      << "transpose of " << name << " " << cost.reduce_scatter_tb.ToString();
}

// -2 x - 1 and -2 x - 2 modulo 4: 0 -> 3 2, 1 -> 1 0, 2 -> 3 2, 3 -> 1 0. Rank 2 hears 0 in step 1,
// and 1 and 3 in step 2, both over 0 -> 2, since its other port is a self-loop: TB = 2/4 (1 + 2).
TEST(Genkautz, ByHand) {
  const GenkautzCost cost = ComputeGenkautzCost(2, 4);
  EXPECT_EQ(cost.tl, 2);
  EXPECT_EQ(cost.tb, Rational(3, 2));
  // The other way round rank 1, whose other port is a self-loop too, hears of 0 in step 1, and of 2
  // and 3 in step 2, both over its link from 0.
  EXPECT_EQ(cost.reduce_scatter_tb, Rational(3, 2));
}

TEST(Genkautz, SmallOnesAreLikeBreadthFirstBroadcast) {
  for (int32_t degree = 2; degree <= 7; ++degree)
    for (int32_t ranks = degree + 1; ranks <= 90; ++ranks) ExpectLikeBfb(degree, ranks);
}

TEST(Genkautz, LargeOnesAreLikeBreadthFirstBroadcast) {
  Random random(5);
  for (int32_t degree : {2, 3, 4, 8, 16})
    for (int time = 0; time < 4; ++time)
      ExpectLikeBfb(degree, static_cast<int32_t>(100 + random.Below(700)));
  ExpectLikeBfb(2, 256);
  ExpectLikeBfb(3, 729);
  ExpectLikeBfb(4, 1024);
  ExpectLikeBfb(16, 257);
}

// Kautz digraphs are line digraphs of complete graphs (theorem 10).
TEST(Genkautz, KautzSizesCostWhatLineDigraphsDo) {
  for (int32_t degree : {2, 3, 4, 8}) {
    ExpansionCost base{degree + 1, degree, 1, BestTb(degree + 1)};
    for (int32_t lines = 1; LineCost(base, lines).ranks <= 3000; ++lines) {
      const ExpansionCost line = LineCost(base, lines);
      const GenkautzCost cost = ComputeGenkautzCost(degree, static_cast<int32_t>(line.ranks));
      EXPECT_EQ(cost.tl, line.tl);
      EXPECT_EQ(cost.tb, line.tb);
    }
  }
}

// Theorem 21 and Figure 18.
TEST(Genkautz, StaysWithinOneStepAndTwiceTheBandwidthTime) {
  for (int32_t degree : {2, 4, 8, 16})
    for (int32_t ranks = degree + 1; ranks <= 2000; ranks += 29) {
      const GenkautzCost cost = ComputeGenkautzCost(degree, ranks);
      EXPECT_LE(cost.tl, MooreBoundSteps(ranks, degree) + 1) << degree << " " << ranks;
      EXPECT_LE(cost.tb, Rational(2) * BestTb(ranks)) << degree << " " << ranks;
      EXPECT_GE(cost.tb, BestTb(ranks)) << degree << " " << ranks;
    }
}

}  // namespace
}  // namespace tutti::design

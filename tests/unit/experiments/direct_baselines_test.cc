#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "direct_connect/baselines.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/topo/expression.h"

namespace tutti::direct {
namespace {

// The first tree: 0 - 4, 4 - 2, 4 - 6, 2 - 1, 2 - 3, 6 - 5, 6 - 7; mirrored, rank r is 7 - r:
// 7 - 3, 3 - 5, 3 - 1, 5 - 6, 5 - 4, 1 - 2, 1 - 0.
TEST(DirectBaselinesTest, DoubleBinaryTreeOfEight) {
  const std::vector<std::vector<int32_t>> neighbours = {{1, 4},       {0, 2, 2, 3}, {1, 1, 3, 4},
                                                        {1, 2, 5, 7}, {0, 2, 5, 6}, {3, 4, 6, 6},
                                                        {4, 5, 5, 7}, {3, 6}};
  const Result<Topology> trees = DoubleBinaryTree(8);
  ASSERT_TRUE(trees.has_value());
  for (int32_t rank = 0; rank < 8; ++rank) {
    std::vector<int32_t> heads;
    for (LinkId link : trees->OutLinks(NodeId{rank})) heads.push_back(trees->head(link).value);
    std::sort(heads.begin(), heads.end());
    EXPECT_EQ(heads, neighbours[static_cast<size_t>(rank)]) << rank;
  }
  EXPECT_EQ(DoubleBinaryTreeHeight(8), 3);
}

TEST(DirectBaselinesTest, NoRankOfTheTreesHasMoreThanFourPorts) {
  for (int32_t ranks = 2; ranks <= 200; ++ranks) {
    const Result<Topology> trees = DoubleBinaryTree(ranks);
    ASSERT_TRUE(trees.has_value()) << trees.error().message;
    EXPECT_EQ(trees->num_links(), 4 * (ranks - 1));
    for (NodeId rank : trees->Ranks()) EXPECT_LE(trees->out_degree(rank), 4) << ranks;
    int32_t levels = 0;  // ceil(log2 N)
    while ((1 << levels) < ranks) ++levels;
    EXPECT_EQ(DoubleBinaryTreeHeight(ranks), levels) << ranks;
  }
}

// Both halves of the ranks are joined by four cables only.
TEST(DirectBaselinesTest, FlowOfTheTreesIsThatOfTheirCut) {
  const Result<ConcurrentFlow> flow =
      SolveConcurrentFlow(*DoubleBinaryTree(64), {.gap = 1e-3, .demand = {}});
  ASSERT_TRUE(flow.has_value());
  EXPECT_LE(flow->f_lower, Rational(16, 64 * 64));
  EXPECT_GE(flow->f_upper, Rational(16, 64 * 64));
}

TEST(DirectBaselinesTest, ShiftedRingIsTwoRings) {
  EXPECT_EQ(ShiftedRing(1024), "circulant(1024,1,3)");
  EXPECT_EQ(ShiftedRing(9), "circulant(9,1,2)");
  EXPECT_EQ(ShiftedRing(30), "circulant(30,1,7)");
  for (int32_t ranks = 7; ranks <= 64; ++ranks)
    EXPECT_EQ(ParseTopology(ShiftedRing(ranks))->regular_degree(), 4) << ranks;
}

// Of 1024 ranks: the formulas of the header by hand, and the paper's 20640 and 1434 us nearby.
TEST(DirectBaselinesTest, TimesAt1024Ranks) {
  EXPECT_NEAR(ShiftedRingAllReduceUs(1024).ToDouble(), 20627.6, 0.05);
  EXPECT_NEAR(TwoTreeAllReduce(1024).us.ToDouble(), 1429.73, 0.01);
  EXPECT_EQ(TwoTreeAllReduce(1024).pieces, 18);
  EXPECT_NEAR(TreesInOnePass(1024).us.ToDouble(), 714.86, 0.01);
  EXPECT_NEAR(TreesInOnePieceUs(1024).ToDouble(), 3555.44, 0.01);
  EXPECT_NEAR(TraditionalTorusAllReduceUs(32).ToDouble(), 1407.61, 0.01);
}

}  // namespace
}  // namespace tutti::direct

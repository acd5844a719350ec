// Predicted costs of expansions against figures worked out by hand and those of the paper.

#include "tutti/synth/expand_cost.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti {
namespace {

// tb of table 4 and 7 is printed to three digits.
int64_t Thousandths(const Rational& tb) {
  return *(tb * Rational(1000) + Rational(1, 2)).Floor().Num64();
}

ExpansionCost Best(int64_t ranks, int32_t degree, int32_t tl) {
  return {.ranks = ranks, .degree = degree, .tl = tl, .tb = BestTb(ranks)};
}

TEST(ExpandCostTest, LineByHand) {
  // L(K2,2): 3/4 + 1/4; again: + 1/8.
  const ExpansionCost k22 = Best(4, 2, 2);
  EXPECT_EQ(LineCost(k22), (ExpansionCost{.ranks = 8, .degree = 2, .tl = 3, .tb = Rational(1)}));
  EXPECT_EQ(LineCost(k22, 2),
            (ExpansionCost{.ranks = 16, .degree = 2, .tl = 4, .tb = Rational(9, 8)}));
  EXPECT_EQ(LineCost(LineCost(k22)), LineCost(k22, 2));
  // Corollary 7.1's sum where d - 1 is no divisor: d = 1.
  EXPECT_EQ(LineCost(Best(5, 1, 4), 3).tb, Rational(4, 5) + Rational(3, 5));
}

TEST(ExpandCostTest, LineIsCorollary71) {
  for (int32_t d = 2; d <= 6; ++d)
    for (int64_t n = 2; n <= 20; ++n) {
      int64_t grown = n;
      for (int32_t k = 1; k <= 5; ++k) {
        grown *= d;
        const ExpansionCost cost = LineCost({.ranks = n, .degree = d, .tl = 3, .tb = {}}, k);
        EXPECT_EQ(cost.ranks, grown);
        EXPECT_EQ(cost.tl, 3 + k);
        EXPECT_EQ(cost.tb, Rational(d, d - 1) * (Rational(1, n) - Rational(1, grown)));
      }
    }
}

TEST(ExpandCostTest, DegreeAndPowerKeepBandwidthOptimality) {
  for (int64_t n = 2; n <= 12; ++n)
    for (int32_t k = 1; k <= 4; ++k) {
      const ExpansionCost degree = DegreeCost(Best(n, 3, 2), k);
      EXPECT_EQ(degree, Best(n * k, 3 * k, k == 1 ? 2 : 3));
      int64_t power = 1;
      for (int32_t i = 0; i < k; ++i) power *= n;
      EXPECT_EQ(PowerCost(Best(n, 3, 2), k), Best(power, 3 * k, 2 * k));
    }
}

TEST(ExpandCostTest, DegreeAndPowerOfWorseSchedules) {
  const ExpansionCost worse{.ranks = 3, .degree = 2, .tl = 2, .tb = Rational(1)};
  EXPECT_EQ(DegreeCost(worse, 2).tb, Rational(1) + Rational(1, 6));
  EXPECT_EQ(PowerCost(worse, 2).tb, Rational(3, 2) * Rational(8, 9));
}

TEST(ExpandCostTest, ProductAddsUp) {
  const std::vector<ExpansionCost> factors{Best(4, 1, 3), Best(8, 1, 7), Best(3, 2, 1)};
  EXPECT_EQ(ProductCost(factors), Best(96, 4, 11));
  EXPECT_EQ(BidirectionalCost(Best(6, 2, 2)), Best(6, 4, 2));
}

// Table 4: N = 1024, d = 4.
TEST(ExpandCostTest, Table4) {
  const ExpansionCost circulant = LineCost(Best(16, 4, 3), 3);
  EXPECT_EQ(circulant.ranks, 1024);
  EXPECT_EQ(circulant.tl, 6);
  EXPECT_EQ(Thousandths(circulant.tb), 1020);

  const ExpansionCost diamond = LineCost(PowerCost(Best(8, 2, 3), 2), 2);
  EXPECT_EQ(diamond.ranks, 1024);
  EXPECT_EQ(diamond.degree, 4);
  EXPECT_EQ(diamond.tl, 8);
  EXPECT_EQ(Thousandths(diamond.tb), 1004);

  const ExpansionCost debruijn = LineCost(PowerCost(Best(16, 2, 5), 2));
  EXPECT_EQ(debruijn.tl, 11);
  EXPECT_EQ(Thousandths(debruijn.tb), 1000);

  const ExpansionCost rings = PowerCost(ProductCost(std::vector{Best(4, 1, 3), Best(8, 1, 7)}), 2);
  EXPECT_EQ(rings, Best(1024, 4, 20));
}

}  // namespace
}  // namespace tutti

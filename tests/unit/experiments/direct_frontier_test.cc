#include <gtest/gtest.h>

#include "direct_connect/frontier.h"
#include "experiments_testing.h"
#include "tutti/bounds/bounds.h"
#include "tutti/design/finder.h"

namespace tutti::direct {
namespace {

TEST(DirectFrontierTest, DominatesIsNowhereWorseAndSomewhereBetter) {
  const Cost cost{5, Rational(1)};
  EXPECT_TRUE(Dominates({4, Rational(1)}, cost));
  EXPECT_TRUE(Dominates({5, Rational(9, 10)}, cost));
  EXPECT_FALSE(Dominates(cost, cost));
  EXPECT_FALSE(Dominates({4, Rational(11, 10)}, cost));
}

TEST(DirectFrontierTest, StandingBesideThePaper) {
  const std::vector<PrintedCost> printed = {{"a", {3, Rational(2)}}, {"b", {5, Rational(1)}}};
  EXPECT_EQ(Standing({3, Rational(1)}, printed), "dominates 2 of 2");
  EXPECT_EQ(Standing({5, Rational(1)}, printed), "same cost as one");
  EXPECT_EQ(Standing({4, Rational(3, 2)}, printed), "adds to the frontier");
  EXPECT_EQ(Standing({6, Rational(1)}, printed), "beaten by 1 of 2");
}

TEST(DirectFrontierTest, ReachedByTheFinder) {
  Design design;
  design.recipe = "torus(2,2)";
  design.tl = 4;
  design.tb = Rational(1);
  EXPECT_EQ(Reached({4, Rational(1)}, {design}), "same cost");
  EXPECT_EQ(Reached({5, Rational(1)}, {design}), "dominated by torus(2,2)");
  EXPECT_EQ(Reached({4, Rational(1, 2)}, {design}), "missed");
}

TEST(DirectFrontierTest, TheFlowLimitIsThePapersBound) {
  for (const PrintedNetwork& bound : PrintedBounds())
    EXPECT_TRUE(
        Compare({.ours = MooreFlow(bound.ranks, kTableDegree), .paper = bound.flow})->agrees)
        << bound.ranks;
}

TEST(DirectFrontierTest, EveryPrintedFigureIsAFigure) {
  for (const PrintedNetwork& network : PrintedNetworks())
    for (const char* text : {network.tl, network.tb, network.diameter, network.flow})
      EXPECT_TRUE(Rational::Parse(text).has_value()) << network.recipe << ": " << text;
}

}  // namespace
}  // namespace tutti::direct

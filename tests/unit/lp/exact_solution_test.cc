// LinearProgram::SolveExactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/lp/linear_program.h"

namespace tutti {
namespace {

using Goal = LinearProgram::Goal;
constexpr double kNoLimit = LinearProgram::kNoLimit;

TEST(ExactLpSolution, TextbookMaximumWithThirds) {
  // x + y with 3 x + y <= 1 and x + 3 y <= 1: both 1/4.
  LinearProgram lp(Goal::kMaximize);
  const int32_t x = lp.AddColumn(0, kNoLimit, 1), y = lp.AddColumn(0, kNoLimit, 1);
  lp.AddRow(-kNoLimit, 1, {{x, 3}, {y, 1}});
  lp.AddRow(-kNoLimit, 1, {{x, 1}, {y, 3}});
  const Result<ExactLpSolution> exact = lp.SolveExactly();
  ASSERT_TRUE(exact.has_value()) << exact.error().message;
  EXPECT_EQ(exact->objective, Rational(1, 2));
  EXPECT_THAT(exact->columns, testing::ElementsAre(Rational(1, 4), Rational(1, 4)));
  EXPECT_THAT(exact->row_prices, testing::ElementsAre(Rational(1, 4), Rational(1, 4)));
}

TEST(ExactLpSolution, BoundsRangesAndFractionsOfTwoCount) {
  // x - y with 2 <= x + y <= 5, -1 <= x, y <= 7/2 free below: at x = -1, y = 7/2.
  LinearProgram lp(Goal::kMinimize);
  const int32_t x = lp.AddColumn(-1, kNoLimit, 1), y = lp.AddColumn(-kNoLimit, 3.5, -1);
  lp.AddRow(2, 5, {{x, 1}, {y, 1}});
  EXPECT_EQ(lp.SolveExactly()->objective, Rational(-9, 2));
  // 2^-40 x >= 1/8 asks for x = 2^37.
  LinearProgram small(Goal::kMinimize);
  const int32_t z = small.AddColumn(0, kNoLimit, 1);
  small.AddRow(0.125, kNoLimit, {{z, std::ldexp(1, -40)}});
  EXPECT_EQ(small.SolveExactly()->objective, Rational(int64_t{1} << 37));
}

TEST(ExactLpSolution, WhatDoublesDoNotTellApartIsTold) {
  // y is better than x by 2^-40, far below what the library looks at.
  const double more = 1 + std::ldexp(1, -40);
  for (const bool first : {true, false}) {
    LinearProgram lp(Goal::kMaximize);
    const int32_t x = lp.AddColumn(0, kNoLimit, first ? 1 : more);
    const int32_t y = lp.AddColumn(0, kNoLimit, first ? more : 1);
    lp.AddRow(-kNoLimit, 1, {{x, 1}, {y, 1}});
    EXPECT_EQ(lp.SolveExactly()->objective, Rational::FromDouble(more));
  }
  // The second row is the tighter one by as little.
  LinearProgram lp(Goal::kMaximize);
  const int32_t x = lp.AddColumn(0, kNoLimit, 1);
  lp.AddRow(-kNoLimit, 1, {{x, 1}});
  lp.AddRow(-kNoLimit, 1 - std::ldexp(1, -40), {{x, 1}});
  EXPECT_EQ(lp.SolveExactly()->objective, Rational::FromDouble(1 - std::ldexp(1, -40)));
}

TEST(ExactLpSolution, RefusesWhatHasNoAnswer) {
  LinearProgram infeasible(Goal::kMinimize);
  const int32_t x = infeasible.AddColumn(0, 1, 1);
  infeasible.AddRow(2, kNoLimit, {{x, 1}});
  EXPECT_EQ(infeasible.SolveExactly().error().code, ErrorCode::kInfeasible);
  LinearProgram far(Goal::kMinimize);
  const int32_t y = far.AddColumn(0, kNoLimit, 1);
  const int32_t z = far.AddColumn(0, kNoLimit, 1);
  far.AddRow(0, 0, {{y, std::ldexp(1, 33)}, {z, -1}});
  far.AddRow(1, kNoLimit, {{y, std::ldexp(1, -30)}});
  const Result<ExactLpSolution> solved = far.SolveExactly();
  ASSERT_FALSE(solved.has_value());
  EXPECT_THAT(solved.error().message, testing::HasSubstr("do not fit into 62 bits"));
}

// By weak duality: both sides feasible and equal is the optimum, whatever found it.
TEST(ExactLpSolution, RandomProgramsAreProvenFromBothSides) {
  Random random(11);
  for (int32_t round = 0; round < 60; ++round) {
    LinearProgram lp(Goal::kMaximize);
    const auto columns = static_cast<int32_t>(1 + random.Below(12));
    const auto rows = static_cast<int32_t>(1 + random.Below(10));
    std::vector<std::vector<int64_t>> entry(static_cast<size_t>(rows));
    std::vector<int64_t> cost, limit;
    for (int32_t j = 0; j < columns; ++j) {
      cost.push_back(static_cast<int64_t>(random.Below(20)));
      lp.AddColumn(0, kNoLimit, static_cast<double>(cost.back()));
    }
    for (auto& row : entry) {
      limit.push_back(static_cast<int64_t>(random.Below(50)));
      std::vector<LinearProgram::Entry> entries;
      for (int32_t j = 0; j < columns; ++j) {
        row.push_back(static_cast<int64_t>(1 + random.Below(9)));
        entries.push_back({j, static_cast<double>(row.back())});
      }
      lp.AddRow(-kNoLimit, static_cast<double>(limit.back()), entries);
    }
    const Result<ExactLpSolution> exact = lp.SolveExactly();
    ASSERT_TRUE(exact.has_value()) << exact.error().message;
    Rational reached, allowed;
    for (size_t j = 0; j < cost.size(); ++j) {
      EXPECT_GE(exact->columns[j], Rational(0));
      reached += exact->columns[j] * Rational(cost[j]);
      Rational price;
      for (size_t i = 0; i < entry.size(); ++i) price += exact->row_prices[i] * entry[i][j];
      EXPECT_GE(price, Rational(cost[j]));
    }
    for (size_t i = 0; i < entry.size(); ++i) {
      EXPECT_GE(exact->row_prices[i], Rational(0));
      allowed += exact->row_prices[i] * Rational(limit[i]);
      Rational sum;
      for (size_t j = 0; j < cost.size(); ++j) sum += exact->columns[j] * entry[i][j];
      EXPECT_LE(sum, Rational(limit[i]));
    }
    EXPECT_EQ(reached, exact->objective);
    EXPECT_EQ(allowed, exact->objective);
  }
}

}  // namespace
}  // namespace tutti

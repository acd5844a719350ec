#include "tutti/lp/linear_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/random.h"

namespace tutti {
namespace {

using Goal = LinearProgram::Goal;

LpSolution MustSolve(LinearProgram& lp) {
  Result<LpSolution> solution = lp.Solve();
  if (!solution) {
    ADD_FAILURE() << solution.error().message;
    return {};
  }
  return *solution;
}

TEST(LinearProgramTest, SolvesATextbookMaximum) {
  // Dantzig's: 3 x + 5 y with x <= 4, 2 y <= 12, 3 x + 2 y <= 18.
  LinearProgram lp(Goal::kMaximize);
  const int32_t x = lp.AddColumn(0, LinearProgram::kNoLimit, 3);
  const int32_t y = lp.AddColumn(0, LinearProgram::kNoLimit, 5);
  lp.AddRow(-LinearProgram::kNoLimit, 4, {{x, 1}});
  lp.AddRow(-LinearProgram::kNoLimit, 12, {{y, 2}});
  lp.AddRow(-LinearProgram::kNoLimit, 18, {{x, 3}, {y, 2}});
  const LpSolution solution = MustSolve(lp);
  EXPECT_DOUBLE_EQ(solution.objective, 36);
  EXPECT_DOUBLE_EQ(solution.columns[0], 2);
  EXPECT_DOUBLE_EQ(solution.columns[1], 6);
  EXPECT_DOUBLE_EQ(solution.row_prices[0], 0);
  EXPECT_DOUBLE_EQ(solution.row_prices[1], 1.5);
  EXPECT_DOUBLE_EQ(solution.row_prices[2], 1);
  ASSERT_TRUE(solution.certificate.has_value());
  EXPECT_EQ(solution.certificate->objective, Rational(36));
  EXPECT_EQ(solution.certificate->dual_objective, Rational(36));
  EXPECT_EQ(solution.certificate->primal_violation, Rational(0));
  EXPECT_EQ(solution.certificate->dual_violation, Rational(0));
}

TEST(LinearProgramTest, SolvesAMinimumWithRangesAndFreeColumns) {
  // x - y with 2 <= x + y <= 5, -1 <= x, y <= 4 free below: at x = -1, y = 4.
  LinearProgram lp(Goal::kMinimize);
  const int32_t x = lp.AddColumn(-1, LinearProgram::kNoLimit, 1);
  const int32_t y = lp.AddColumn(-LinearProgram::kNoLimit, 4, -1);
  lp.AddRow(2, 5, {{x, 1}, {y, 1}});
  const LpSolution solution = MustSolve(lp);
  EXPECT_DOUBLE_EQ(solution.objective, -5);
  EXPECT_EQ(solution.certificate->dual_objective, Rational(-5));
}

TEST(LinearProgramTest, EntriesOfOneColumnAddUp) {
  LinearProgram lp(Goal::kMaximize);
  const int32_t x = lp.AddColumn(0, LinearProgram::kNoLimit, 1);
  lp.AddRow(-LinearProgram::kNoLimit, 6, {{x, 1}, {x, 2}});
  EXPECT_DOUBLE_EQ(MustSolve(lp).objective, 2);
}

TEST(LinearProgramTest, EmptyProgramsAndProgramsWithoutRowsAreSolved) {
  LinearProgram empty(Goal::kMinimize);
  EXPECT_EQ(MustSolve(empty).objective, 0);
  LinearProgram box(Goal::kMinimize);
  box.AddColumn(-2, 7, 3);
  box.AddColumn(-2, 7, -1);
  EXPECT_DOUBLE_EQ(MustSolve(box).objective, -13);
}

TEST(LinearProgramTest, RowsWithoutEntriesLeaveTheRestSolved) {
  for (const double zero : {0.0, 1.0}) {
    LinearProgram lp(Goal::kMaximize);
    const int32_t x = lp.AddColumn(-1, 2, 1);
    lp.AddRow(-LinearProgram::kNoLimit, 2, {{x, zero}, {x, -zero}});
    EXPECT_DOUBLE_EQ(MustSolve(lp).objective, 2);
  }
}

TEST(LinearProgramTest, GoesOnAfterMoreRowsAndColumns) {
  LinearProgram lp(Goal::kMaximize);
  const int32_t x = lp.AddColumn(0, 10, 1);
  EXPECT_DOUBLE_EQ(MustSolve(lp).objective, 10);
  lp.AddRow(-LinearProgram::kNoLimit, 4, {{x, 1}});
  EXPECT_DOUBLE_EQ(MustSolve(lp).objective, 4);
  const int32_t y = lp.AddColumn(0, 10, 2);
  lp.AddRow(-LinearProgram::kNoLimit, 5, {{x, 1}, {y, 1}});
  EXPECT_DOUBLE_EQ(MustSolve(lp).objective, 10);
}

TEST(LinearProgramTest, NewColumnsEnterRowsThatStand) {
  LinearProgram lp(Goal::kMaximize);
  const int32_t x = lp.AddColumn(0, LinearProgram::kNoLimit, 1);
  const int32_t row = lp.AddRow(-LinearProgram::kNoLimit, 12, {{x, 3}});
  EXPECT_DOUBLE_EQ(MustSolve(lp).objective, 4);
  lp.AddColumn(0, LinearProgram::kNoLimit, 1, {{row, 1}, {row, 1}});
  EXPECT_DOUBLE_EQ(MustSolve(lp).objective, 6);
  lp.AddColumn(0, 2, 1, {{row, 1}});
  const LpSolution solution = MustSolve(lp);
  EXPECT_DOUBLE_EQ(solution.objective, 7);
  EXPECT_EQ(solution.certificate->dual_objective, Rational(7));
}

TEST(LinearProgramTest, RefusesEntriesInRowsThatDoNotExist) {
  LinearProgram lp(Goal::kMaximize);
  lp.AddColumn(0, 1, 1, {{0, 1}});
  lp.AddRow(0, 1, {});
  const Result<LpSolution> solution = lp.Solve();
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().message, "column 0: row 0 does not exist, there are 0");
}

TEST(LinearProgramTest, AnswersAsFoundCarryNoCertificate) {
  LinearProgram lp(Goal::kMinimize);
  lp.AddColumn(1, 2, 1);
  const Result<LpSolution> solution = lp.Solve(LinearProgram::Check::kAsFound);
  ASSERT_TRUE(solution.has_value());
  EXPECT_DOUBLE_EQ(solution->objective, 1);
  EXPECT_FALSE(solution->certificate.has_value());
}

TEST(LinearProgramTest, SaysInfeasible) {
  LinearProgram lp(Goal::kMinimize);
  const int32_t x = lp.AddColumn(0, LinearProgram::kNoLimit, 1);
  lp.AddRow(3, LinearProgram::kNoLimit, {{x, 1}});
  lp.AddRow(-LinearProgram::kNoLimit, 2, {{x, 1}});
  const Result<LpSolution> solution = lp.Solve();
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(solution.error().message, "the linear program is infeasible");
}

TEST(LinearProgramTest, SaysUnbounded) {
  for (const bool with_row : {false, true}) {
    LinearProgram lp(Goal::kMaximize);
    const int32_t x = lp.AddColumn(0, LinearProgram::kNoLimit, 1);
    const int32_t y = lp.AddColumn(0, LinearProgram::kNoLimit, 0);
    if (with_row) lp.AddRow(-LinearProgram::kNoLimit, 2, {{x, 1}, {y, -1}});
    const Result<LpSolution> solution = lp.Solve();
    ASSERT_FALSE(solution.has_value());
    EXPECT_EQ(solution.error().code, ErrorCode::kInfeasible);
    EXPECT_EQ(solution.error().message, "the linear program is unbounded");
  }
}

// --- Wrong input: one fault a row ----------------------------------------------------------------

struct BadCase {
  const char* name;
  double lower, upper, cost;
  int32_t column;
  double entry;
  const char* message;
};

class LinearProgramRejects : public testing::TestWithParam<BadCase> {};

TEST_P(LinearProgramRejects, NamesTheFirstFault) {
  const BadCase& bad = GetParam();
  LinearProgram lp(Goal::kMinimize);
  lp.AddColumn(0, 1, 1);
  lp.AddColumn(bad.lower, bad.upper, bad.cost);
  lp.AddRow(0, 1, {{0, 1}, {bad.column, bad.entry}});
  lp.AddColumn(5, 4, 1);  // a later fault, not reported
  const Result<LpSolution> solution = lp.Solve();
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(solution.error().message, bad.message);
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
INSTANTIATE_TEST_SUITE_P(
    All, LinearProgramRejects,
    testing::Values(
        BadCase{"NanBound", kNaN, 1, 0, 1, 1, "column 1: a bound is not a number"},
        BadCase{"Crossed", 2, 1, 0, 1, 1, "column 1: the lower bound 2 is above the upper bound 1"},
        BadCase{"NoValue", LinearProgram::kNoLimit, LinearProgram::kNoLimit, 0, 1, 1,
                "column 1: the bounds leave no finite value"},
        BadCase{"NanCost", 0, 1, kNaN, 1, 1, "column 1: the cost is nan"},
        BadCase{"ColumnAbove", 0, 1, 0, 2, 1, "row 0: column 2 does not exist, there are 2"},
        BadCase{"ColumnBelow", 0, 1, 0, -1, 1, "row 0: column -1 does not exist, there are 2"},
        BadCase{"InfiniteEntry", 0, 1, 0, 1, LinearProgram::kNoLimit,
                "row 0: the entry of column 1 is inf"}),
    [](const auto& row) { return std::string(row.param.name); });

// --- Oracle: the best of all vertices ------------------------------------------------------------

// A half-space a x <= b; columns' bounds are half-spaces too. Integers, so exact.
struct HalfSpace {
  std::vector<int64_t> a;
  int64_t b;
};

// The point where the chosen half-spaces are tight, if it is one point.
std::optional<std::vector<Rational>> Meet(const std::vector<HalfSpace>& all,
                                          const std::vector<size_t>& chosen) {
  const size_t n = chosen.size();
  std::vector<std::vector<Rational>> rows;
  for (size_t i : chosen) {
    rows.emplace_back(all[i].a.begin(), all[i].a.end());
    rows.back().push_back(all[i].b);
  }
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    while (pivot < n && rows[pivot][k].is_zero()) ++pivot;
    if (pivot == n) return std::nullopt;
    std::swap(rows[k], rows[pivot]);
    for (size_t i = 0; i < n; ++i) {
      if (i == k || rows[i][k].is_zero()) continue;
      const Rational factor = rows[i][k] / rows[k][k];
      for (size_t j = k; j <= n; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  std::vector<Rational> point;
  for (size_t k = 0; k < n; ++k) point.push_back(rows[k][n] / rows[k][k]);
  return point;
}

Rational Dot(const std::vector<int64_t>& a, const std::vector<Rational>& x) {
  Rational sum = 0;
  for (size_t j = 0; j < a.size(); ++j) sum += Rational(a[j]) * x[j];
  return sum;
}

// The largest cost over a bounded polytope; none: empty.
std::optional<Rational> BestVertex(const std::vector<HalfSpace>& all,
                                   const std::vector<int64_t>& cost) {
  std::optional<Rational> best;
  const size_t n = cost.size();
  for (uint32_t bits = 0; bits < (1u << all.size()); ++bits) {
    std::vector<size_t> chosen;
    for (size_t i = 0; i < all.size(); ++i)
      if ((bits >> i & 1) != 0) chosen.push_back(i);
    if (chosen.size() != n) continue;
    const auto point = Meet(all, chosen);
    if (!point) continue;
    bool feasible = true;
    for (const HalfSpace& half : all)
      feasible = feasible && Dot(half.a, *point) <= Rational(half.b);
    if (!feasible) continue;
    const Rational value = Dot(cost, *point);
    if (!best || *best < value) best = value;
  }
  return best;
}

TEST(LinearProgramProperty, FindsTheBestVertex) {
  int feasible = 0, infeasible = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto draw = [&random](int64_t lo, int64_t hi) {
      return lo + static_cast<int64_t>(random.Below(static_cast<uint64_t>(hi - lo + 1)));
    };
    const auto n = static_cast<size_t>(draw(1, 3));
    LinearProgram lp(Goal::kMaximize);
    std::vector<HalfSpace> all;
    std::vector<int64_t> cost;
    for (size_t j = 0; j < n; ++j) {
      cost.push_back(draw(-5, 5));
      const int64_t lower = draw(-4, 2), upper = lower + draw(0, 6);
      lp.AddColumn(static_cast<double>(lower), static_cast<double>(upper),
                   static_cast<double>(cost[j]));
      HalfSpace above{std::vector<int64_t>(n, 0), upper}, below{std::vector<int64_t>(n, 0), -lower};
      above.a[j] = 1;
      below.a[j] = -1;
      all.push_back(above);
      all.push_back(below);
    }
    for (int64_t rows = draw(0, 4); rows > 0; --rows) {
      HalfSpace half{{}, draw(-6, 9)};
      std::vector<LinearProgram::Entry> entries;
      for (size_t j = 0; j < n; ++j) {
        half.a.push_back(draw(-3, 3));
        entries.push_back({static_cast<int32_t>(j), static_cast<double>(half.a[j])});
      }
      lp.AddRow(-LinearProgram::kNoLimit, static_cast<double>(half.b), entries);
      all.push_back(half);
    }
    const std::optional<Rational> best = BestVertex(all, cost);
    const Result<LpSolution> solution = lp.Solve();
    ASSERT_EQ(solution.has_value(), best.has_value())
        << (solution ? std::string("solved") : solution.error().message);
    if (!best) {
      EXPECT_EQ(solution.error().message, "the linear program is infeasible");
      ++infeasible;
      continue;
    }
    ++feasible;
    EXPECT_NEAR(solution->objective, best->ToDouble(), 1e-9);
    // All columns are bounded, so the dual objective is a proven limit.
    EXPECT_EQ(solution->certificate->dual_violation, Rational(0));
    EXPECT_GE(solution->certificate->dual_objective, *best);
  }
  EXPECT_GT(feasible, 50);
  EXPECT_GT(infeasible, 20);
}

// The same program given at once and bit by bit, solved in between, has the same optimum.
TEST(LinearProgramProperty, TheOrderOfCallsDoesNotMatter) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    LinearProgram whole(Goal::kMaximize), pieces(Goal::kMaximize);
    const auto columns = static_cast<int32_t>(2 + random.Below(5));
    const auto rows = static_cast<int32_t>(1 + random.Below(5));
    std::vector<std::vector<double>> a(static_cast<size_t>(rows));
    std::vector<double> cost;
    for (auto& row : a)
      for (int32_t j = 0; j < columns; ++j) row.push_back(static_cast<double>(random.Below(5)));
    for (int32_t j = 0; j < columns; ++j) cost.push_back(static_cast<double>(random.Below(9)));

    for (int32_t j = 0; j < columns; ++j) whole.AddColumn(0, 7, cost[static_cast<size_t>(j)]);
    for (int32_t i = 0; i < rows; ++i) {
      std::vector<LinearProgram::Entry> entries;
      for (int32_t j = 0; j < columns; ++j)
        entries.push_back({j, a[static_cast<size_t>(i)][static_cast<size_t>(j)]});
      whole.AddRow(-LinearProgram::kNoLimit, 10 + i, entries);
    }
    // Rows and columns in turn; each brings its entries in what stands already.
    for (int32_t k = 0; k < std::max(rows, columns); ++k) {
      if (k < columns) {
        std::vector<LinearProgram::RowEntry> entries;
        for (int32_t i = 0; i < pieces.num_rows(); ++i)
          entries.push_back({i, a[static_cast<size_t>(i)][static_cast<size_t>(k)]});
        pieces.AddColumn(0, 7, cost[static_cast<size_t>(k)], entries);
      }
      if (k % 3 == 0) MustSolve(pieces);
      if (k < rows) {
        std::vector<LinearProgram::Entry> entries;
        for (int32_t j = 0; j < pieces.num_columns(); ++j)
          entries.push_back({j, a[static_cast<size_t>(k)][static_cast<size_t>(j)]});
        pieces.AddRow(-LinearProgram::kNoLimit, 10 + k, entries);
      }
      if (k % 2 == 0) MustSolve(pieces);
    }
    EXPECT_NEAR(MustSolve(pieces).objective, MustSolve(whole).objective, 1e-9);
  }
}

}  // namespace
}  // namespace tutti

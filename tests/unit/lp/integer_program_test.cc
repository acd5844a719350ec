#include "tutti/lp/integer_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/cancel.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;
constexpr double kNone = IntegerProgram::kNoLimit;

TEST(IntegerProgramTest, WorkedExample) {  // of the header; the linear program alone takes 4/3
  IntegerProgram program;
  const int32_t x = program.AddColumn(0, 1, -3, true), y = program.AddColumn(0, 1, -2, true);
  program.AddRow(-kNone, 4, {{x, 3}, {y, 3}});
  const Result<IntegerSolution> solution = program.Solve({});
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  EXPECT_TRUE(solution->proven);
  EXPECT_EQ(solution->columns, (std::vector<double>{1, 0}));
  EXPECT_EQ(solution->objective, -3);
  EXPECT_EQ(solution->bound, -3);
  EXPECT_EQ(solution->Gap(), 0);
}

TEST(IntegerProgramTest, EntriesOfOneColumnAddUpAndColumnsMayBeReal) {
  IntegerProgram program;
  const int32_t x = program.AddColumn(0, 10, -1, false);
  program.AddRow(-kNone, 3, {{x, 1}, {x, 1}});
  EXPECT_DOUBLE_EQ(program.Solve({})->columns[0], 1.5);
}

TEST(IntegerProgramTest, InfeasibleIsSaid) {
  IntegerProgram program;  // 2 x = 1
  const int32_t x = program.AddColumn(0, 5, 0, true);
  program.AddRow(1, 1, {{x, 2}});
  const Result<IntegerSolution> solution = program.Solve({});
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kInfeasible);
  IntegerProgram empty;
  EXPECT_TRUE(empty.Solve({})->columns.empty());
  empty.AddRow(1, 2, {});
  EXPECT_EQ(empty.Solve({}).error().code, ErrorCode::kInfeasible);
}

TEST(IntegerProgramTest, FaultsAreNamed) {
  const auto fault = [](auto fill) {
    IntegerProgram program;
    program.AddColumn(0, 1, 1, true);
    fill(program);
    const Result<IntegerSolution> solution = program.Solve({});
    EXPECT_FALSE(solution.has_value());
    return solution ? "" : solution.error().message;
  };
  EXPECT_THAT(fault([](IntegerProgram& p) { p.AddColumn(2, 1, 0, true); }),
              HasSubstr("column 1: no finite value is between 2 and 1"));
  EXPECT_THAT(fault([](IntegerProgram& p) { p.AddColumn(std::nan(""), 1, 0, true); }),
              HasSubstr("not a number"));
  EXPECT_THAT(fault([](IntegerProgram& p) { p.AddColumn(0, 1, kNone, true); }),
              HasSubstr("column 1: the cost is inf"));
  EXPECT_THAT(fault([](IntegerProgram& p) {
                p.AddRow(0, 1, {{1, 1}});
              }),
              HasSubstr("row 0: column 1 does not exist, there are 1"));
  EXPECT_THAT(fault([](IntegerProgram& p) {
                p.AddRow(0, 1, {{0, kNone}});
              }),
              HasSubstr("row 0: the entry of column 0 is inf"));
}

TEST(IntegerProgramTest, InterruptionIsSaid) {
  IntegerProgram program;
  program.AddColumn(0, 1, 1, true);
  RequestCancel();
  const Result<IntegerSolution> solution = program.Solve({});
  ResetCancel();
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kCancelled);
}

// Knapsacks with two rows against all subsets.
TEST(IntegerProgramTest, AgreesWithEnumeration) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const auto items = static_cast<size_t>(4 + random.Below(7));
    std::vector<double> gain, first, second;
    IntegerProgram program;
    std::vector<IntegerProgram::Entry> row1, row2;
    for (size_t i = 0; i < items; ++i) {
      gain.push_back(static_cast<double>(1 + random.Below(20)));
      first.push_back(static_cast<double>(1 + random.Below(10)));
      second.push_back(static_cast<double>(random.Below(10)));
      const int32_t column = program.AddColumn(0, 1, -gain[i], true);
      row1.push_back({column, first[i]});
      row2.push_back({column, second[i]});
    }
    program.AddRow(-kNone, 20, row1);
    program.AddRow(-kNone, 15, row2);
    double best = 0;
    for (uint32_t subset = 0; subset < 1u << items; ++subset) {
      double value = 0, a = 0, b = 0;
      for (size_t i = 0; i < items; ++i)
        if ((subset >> i & 1) != 0) value += gain[i], a += first[i], b += second[i];
      if (a <= 20 && b <= 15) best = std::max(best, value);
    }
    const Result<IntegerSolution> solution = program.Solve({});
    ASSERT_TRUE(solution.has_value()) << solution.error().message;
    EXPECT_TRUE(solution->proven);
    EXPECT_EQ(solution->objective, -best) << seed;
    EXPECT_EQ(program.Solve({})->columns, solution->columns);
  }
}

TEST(IntegerProgram, NoVerdictOnceALimitIsReached) {
  IntegerProgram program;
  std::vector<IntegerProgram::Entry> row;
  for (int i = 0; i < 40; ++i) row.push_back({program.AddColumn(0, 1, -1 - i % 7, true), 3.0 + i});
  program.AddRow(-kNone, 100, row);
  IntegerLimits clock, count;
  clock.seconds = 1e-9;
  count.iterations = 1;
  for (const IntegerLimits& limits : {clock, count}) {
    const Result<IntegerSolution> solution = program.Solve(limits);
    if (solution) {
      EXPECT_FALSE(solution->proven);
    } else {
      EXPECT_EQ(solution.error().code, ErrorCode::kResourceExhausted);
    }
  }
}

}  // namespace
}  // namespace tutti

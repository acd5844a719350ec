// The figures of [alltoall-mcf] made again: what is exactly the paper's, and who wins.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "experiments_testing.h"
#include "tuna/fourier_kernel.h"

namespace tutti {
namespace {

const ResultRow& RowOf(const ResultTable& table, std::string_view label) {
  for (const ResultRow& row : table.rows)
    if (row.label == label) return row;
  ADD_FAILURE() << "no row '" << label << "' in '" << table.title << "'";
  return table.rows.front();
}

double Ours(const ResultTable& table, std::string_view label, std::string_view column) {
  const ResultCell& cell = RowOf(table, label).cells[ColumnNamed(table, column)];
  EXPECT_TRUE(cell.ours.has_value()) << label << ": " << column << " is " << cell.text;
  return cell.ours ? cell.ours->ToDouble() : 0;
}

// 2/27 with the hosts in the way, and time-stepped schedules within 1 % of it at 1 GiB.
TEST(McfFigures, TimeSteppedSchedulesReachTheFlow) {
  const ExperimentResult result = MustRun("mcf-fig3");
  const ResultTable& table = result.tables.front();
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(ExpectAgreement(table, "f"), 1);
  for (const ResultRow& row : table.rows) {
    const double limit = Ours(table, row.label, "limit (N - 1) f b");
    EXPECT_GE(Ours(table, row.label, "tsmcf"), 0.99 * limit) << row.label;
    for (const char* algorithm : {"tsmcf", "ten", "direct"})
      EXPECT_LE(Ours(table, row.label, algorithm), limit * (1 + 1e-9)) << row.label << algorithm;
  }
}

TEST(McfFigures, RoutingsAtFlowLevel) {
  const ExperimentResult result = MustRun("mcf-fig4", {.max_ranks = 8});
  const ResultTable& table = result.tables.front();
  ASSERT_EQ(table.rows.size(), 3U);
  for (const ResultRow& row : table.rows) {
    const double limit = Ours(table, row.label, "limit (N - 1) f b");
    EXPECT_GE(Ours(table, row.label, "MCF-extP"), 0.99 * limit) << row.label;
    for (const char* other : {"EwSP", "SSSP", "native"})
      EXPECT_LE(Ours(table, row.label, other), limit * (1 + 1e-9)) << row.label << other;
  }
  // One path a pair is not enough on K4,4, as the paper says.
  EXPECT_LT(Ours(table, "K4,4", "ILP-disjoint"), 0.9 * Ours(table, "K4,4", "MCF-extP"));
}

TEST(McfFiguresSlow, TheTorusOfThePaper) {
  const ExperimentResult result = MustRun("mcf-fig4");
  const ResultTable& table = result.tables.front();
  EXPECT_EQ(ExpectAgreement(table, "f"), 1);  // 1/9
  EXPECT_NEAR(Ours(table, "3x3x3 torus", "DOR"), Ours(table, "3x3x3 torus", "MCF-extP"), 0.1);
  // The paper's measurement says more than 1.5; the loads of links say 1.44.
  EXPECT_GE(Ours(table, "3x3x3 torus", "MCF-extP"), 1.4 * Ours(table, "3x3x3 torus", "SSSP"));
}

TEST(McfFiguresSlow, PuncturedToriLoadTheirLinksLessThanSssp) {
  const ResultTable table = MustRun("mcf-fig5").tables.front();
  ASSERT_EQ(table.rows.size(), 6U);
  for (const char* what : {"3 links removed, ", "3 nodes removed, "}) {
    EXPECT_LE(Ours(table, std::string(what) + "MCF-extP", "busiest link"), 0.75) << what;
    // Loads of one path a pair are whole demands: no choice of theirs is better.
    EXPECT_EQ(Ours(table, std::string(what) + "ILP-disjoint", "proven least"), 10) << what;
    EXPECT_LT(Ours(table, std::string(what) + "ILP-disjoint", "busiest link"), 0.8) << what;
  }
}

// What fills figure 8, up to 30 ranks.
TEST(McfFigures, RoutingsOverTheOptimum) {
  const ExperimentResult result = MustRun("mcf-fig8", {.max_ranks = 30});
  const ResultTable& table = result.tables.back();
  ASSERT_EQ(table.rows.size(), 3U);
  for (const ResultRow& row : table.rows) {
    EXPECT_LE(Ours(table, row.label, "MCF-extP"), 1.01) << row.label;
    EXPECT_LE(Ours(table, row.label, "pMCF (disjoint)"), 1.03) << row.label;
    for (size_t i = 1; i < row.cells.size(); ++i) {
      if (row.cells[i].ours) {
        EXPECT_GE(*row.cells[i].ours, Rational(1)) << row.label;
      }
    }
  }
}

TEST(McfFigures, GeneralizedKautzGraphsAreNearTheBound) {
  const ResultTable table = MustRun("mcf-fig10", {.max_ranks = 225}).tables.front();
  ASSERT_EQ(table.rows.size(), 3U);
  for (const ResultRow& row : table.rows) {
    EXPECT_GE(Ours(table, row.label, "random regular"), 1.05) << row.label;
    EXPECT_GE(Ours(table, row.label, "Xpander"), 1.05) << row.label;
    EXPECT_GE(Ours(table, row.label, "2-D torus"), 1.05) << row.label;
    EXPECT_GE(row.cells[2].ours->ToDouble(), 1) << row.label;
    EXPECT_LE(row.cells[2].ours->ToDouble(), 1.15) << row.label;
  }
}

TEST(McfFiguresSlow, FourLayersKeepTheRate) {
  const ExperimentResult result = MustRun("mcf-layers");
  const ResultCell& claim = result.tables.front().rows.front().cells.front();
  ASSERT_TRUE(claim.ours.has_value());
  EXPECT_LE(*claim.ours, Rational(4));
  for (const ResultRow& row : result.tables.back().rows)
    EXPECT_GE(row.cells.back().ours->ToDouble(), 0.99) << row.label;
}

TEST(McfFigures, RunTimesAreThereForEveryMethod) {
  // On larger networks a method that was slow before is left out.
  const ResultTable table = MustRun("mcf-fig7", {.max_ranks = 8}).tables.front();
  ASSERT_EQ(table.rows.size(), 1U);
  for (const ResultRow& row : table.rows)
    for (const ResultCell& cell : row.cells)
      EXPECT_TRUE(cell.ours.has_value()) << row.label << ": " << cell.text;
}

TEST(FourierKernel, TimesArePositive) {
  const Result<FourierKernel> kernel = MeasureFourierKernel(64);
  if (!kernel) GTEST_SKIP() << kernel.error().message;
  EXPECT_GT(kernel->plane_s, 0);
  EXPECT_GT(kernel->lines_s, 0);
  EXPECT_GT(kernel->copy_s, 0);
}

}  // namespace
}  // namespace tutti

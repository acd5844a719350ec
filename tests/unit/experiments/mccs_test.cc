#include "mccs/mccs.h"

#include <gtest/gtest.h>

#include <vector>

#include "experiments_testing.h"
#include "tutti/base/parallel.h"

namespace tutti {
namespace {

// Of each seed the mean over jobs, then over seeds.
TEST(MccsTest, SpeedUpsByHand) {
  EXPECT_DOUBLE_EQ(mccs::SpeedUp({{2, 4}, {6, 6}}, {{1, 1}, {2, 2}}).mean, 3);
}

// Simulated ratios lie where the formula says.
TEST(MccsTest, Figure3AgreesWithItsFormula) {
  const ResultTable table = MustRun("mccs-fig3", {.max_ranks = 256}).tables[0];
  ASSERT_EQ(table.rows.size(), 5u);
  for (const char* k : {"2", "4"}) {
    const size_t exact = ColumnNamed(table, std::string("as a number, ") + k);
    const size_t simulated = ColumnNamed(table, std::string("simulated, ") + k);
    for (const ResultRow& row : table.rows)
      if (row.cells[exact].ours) {
        EXPECT_NEAR(row.cells[simulated].ours->ToDouble(), row.cells[exact].ours->ToDouble(), 0.05)
            << row.label;
      }
  }
}

TEST(MccsTest, TimesAreTheSameForAnyNumberOfThreads) {
  const Result<mccs::Cluster> cluster = mccs::MakeCluster(2);
  ASSERT_TRUE(cluster);
  const mccs::Run run{.policy = "ffa", .rings = 4};
  SetNumThreads(1);
  const auto one = mccs::JobTimes(*cluster, run, 3);
  SetNumThreads(3);
  const auto three = mccs::JobTimes(*cluster, run, 3);
  SetNumThreads(0);
  ASSERT_TRUE(one && three);
  EXPECT_EQ(*one, *three);
}

// Rings that know the network are no slower than those that do not, for as many connections.
TEST(MccsTest, KnowledgeOfTheNetworkPays) {
  const Result<mccs::Cluster> cluster = mccs::MakeCluster(4);
  ASSERT_TRUE(cluster);
  for (const Placement placement : {Placement::kRandom, Placement::kCompact}) {
    const auto times = [&](const char* policy) {
      return mccs::JobTimes(*cluster, {.policy = policy, .rings = 4, .placement = placement}, 2);
    };
    const auto blind = times("random-ring"), rings = times("locality-ring");
    ASSERT_TRUE(blind && rings);
    EXPECT_GT(mccs::SpeedUp(*blind, *rings).mean, 1);
  }
}

// Every element of every all-reduce, through 50 changes of schedules.
TEST(MccsTest, NoByteIsWrongWhileSchedulesChange) {
  const ExperimentResult result = MustRun("mccs-reconfigure", {.step = 20});
  const ResultTable& saw = result.tables[1];
  ASSERT_EQ(saw.rows.size(), 3u);
  EXPECT_EQ(saw.rows[0].cells[0].ours, Rational(50)) << saw.rows[0].label;
  EXPECT_GE(*saw.rows[1].cells[0].ours, Rational(50)) << saw.rows[1].label;
  EXPECT_EQ(saw.rows[2].cells[0].ours, Rational(0)) << saw.rows[2].label;
}

double Ours(const ResultRow& row, size_t column) { return row.cells[column].ours->ToDouble(); }

// Columns: rings by ECMP 0, pinned 2, best 3; made 6, by ECMP 7; gains 9 and 10; bound 11.
TEST(MccsTest, BeyondKeepsToItsBounds) {
  const ExperimentResult result = MustRun("mccs-beyond", {});
  ASSERT_EQ(result.tables.size(), 2u);
  for (const ResultTable& table : result.tables) {
    ASSERT_EQ(table.rows.size(), 8u);
    for (const ResultRow& row : table.rows) {
      SCOPED_TRACE(row.label);
      EXPECT_LE(Ours(row, 2), Ours(row, 0) * (1 + 1e-9));
      EXPECT_LE(Ours(row, 3), Ours(row, 2));
      for (const size_t time : {0, 2, 3, 6}) EXPECT_GE(Ours(row, time), Ours(row, 11));
      EXPECT_NEAR(Ours(row, 9), Ours(row, 2) / Ours(row, 6), 1e-9);
      EXPECT_NEAR(Ours(row, 10), Ours(row, 3) / Ours(row, 6), 1e-9);
    }
  }
  // By hand, 8:1, 256 MiB: each of 4 rings moves 1/16 of a quarter of M over a link of 3.125 GB/s in
  // each of 30 steps of 4 us of alphas; with a link lost two of them share one.
  const double step_us = 268435456.0 / 64 / 3125;
  EXPECT_NEAR(Ours(result.tables[0].rows[7], 2), 30 * (step_us + 4), 1e-3);
  EXPECT_NEAR(Ours(result.tables[1].rows[7], 2), 30 * (2 * step_us + 4), 1e-3);
  for (size_t row = 0; row < 8; ++row)
    EXPECT_LE(Ours(result.tables[0].rows[row], 11), Ours(result.tables[1].rows[row], 11));
  EXPECT_TRUE(MustRun("mccs-beyond", {.max_ranks = 15}).tables[0].rows.empty());
}

}  // namespace
}  // namespace tutti

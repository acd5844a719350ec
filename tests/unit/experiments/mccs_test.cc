#include "mccs/mccs.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "experiments_testing.h"
#include "tutti/base/parallel.h"

namespace tutti {
namespace {

using mccs::Estimate;

TEST(MccsTest, IntervalsByHand) {
  // Mean 2, deviation 1, n = 3: 4.303 / sqrt(3).
  const std::array<double, 3> values = {1, 2, 3};
  const Estimate estimate = mccs::EstimateOf(values);
  EXPECT_DOUBLE_EQ(estimate.mean, 2);
  EXPECT_NEAR(estimate.half, 2.484, 1e-3);
  EXPECT_EQ(mccs::EstimateOf(std::span(values).first(1)).half, 0);
  // Of each seed the mean over jobs, then over seeds.
  const Estimate speed_up = mccs::SpeedUp({{2, 4}, {6, 6}}, {{1, 1}, {2, 2}});
  EXPECT_DOUBLE_EQ(speed_up.mean, 3);
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

}  // namespace
}  // namespace tutti

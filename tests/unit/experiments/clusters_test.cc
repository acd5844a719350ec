// The limits of all-gather beside the published ones, and that trees reach them.
#include <gtest/gtest.h>

#include "experiments_testing.h"

namespace tutti {
namespace {

TEST(ClustersFigures, TreesReachThePublishedLimitsExactly) {
  const ResultTable table = MustRun("clusters-limits", {.max_ranks = 36}).tables.front();
  int printed = 0;
  for (const ResultRow& row : table.rows) {
    SCOPED_TRACE(row.label);
    EXPECT_EQ(row.cells[3].text, "yes");
    EXPECT_EQ(row.cells[1].ours, row.cells[2].ours);
    if (row.cells[1].paper.empty()) continue;
    EXPECT_EQ(row.cells[1].ours->ToString(), row.cells[1].paper);
    ++printed;
  }
  EXPECT_EQ(printed, 12);
  EXPECT_GE(table.rows.size(), 16u);
}

TEST(ClustersFigures, TreesAreNearTheBoundInTwoBoxes) {
  const ResultTable table = MustRun("clusters-growth", {.max_ranks = 16}).tables.front();
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(*table.rows[0].cells[0].ours, Rational(16));
  EXPECT_GE(*table.rows[0].cells[3].ours, Rational(90));
}

}  // namespace
}  // namespace tutti

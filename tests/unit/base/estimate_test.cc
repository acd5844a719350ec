#include "tutti/base/estimate.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

namespace tutti {
namespace {

// Mean 2, deviation 1, n = 3: 4.303 / sqrt(3).
TEST(EstimateTest, IntervalByHand) {
  const std::array<double, 3> values = {1, 2, 3};
  const Estimate estimate = EstimateOf(values);
  EXPECT_DOUBLE_EQ(estimate.mean, 2);
  EXPECT_NEAR(estimate.half, 2.484, 1e-3);
  EXPECT_EQ(EstimateOf(std::span(values).first(1)).half, 0);
  EXPECT_EQ(EstimateOf({}).mean, 0);
}

TEST(EstimateTest, MedianByHand) {
  EXPECT_EQ(MedianOf({}), 0);
  EXPECT_EQ(MedianOf({7}), 7);
  EXPECT_EQ(MedianOf({9, 1, 5}), 5);
  EXPECT_EQ(MedianOf({4, 1, 3, 2}), 3);
}

// More values of the same spread, a narrower interval; beyond the table the normal quantile.
TEST(EstimateTest, NarrowsWithMoreValues) {
  double last = 1e9;
  for (int pairs = 1; pairs < 40; ++pairs) {
    std::vector<double> values;
    for (int i = 0; i < pairs; ++i) values.insert(values.end(), {9.0, 11.0});
    const Estimate estimate = EstimateOf(values);
    EXPECT_NEAR(estimate.mean, 10, 1e-12);
    EXPECT_GT(estimate.half, 0);
    EXPECT_LT(estimate.half, last);
    last = estimate.half;
  }
  EXPECT_NEAR(last, 1.96 / 8.775, 1e-3);  // deviation sqrt(78 / 77), n = 78
}

}  // namespace
}  // namespace tutti

#include "tutti/training/fourier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

// 10 planes on 3 ranks: 4 on the slowest, 2 rounds of its 3 threads.
TEST(Fourier, OfTenPlanesByHand) {
  const FourierJob job{10, 3, 3};
  EXPECT_EQ(*FourierSendBytes(job), 4 * 100 * 16);
  const FourierTimes times = *TimeOfFourier(job, {1.0, 0.5, 0.25}, 7.0);
  EXPECT_DOUBLE_EQ(times.planes_s, 2.5);
  EXPECT_DOUBLE_EQ(times.lines_s, 1.5);
  EXPECT_DOUBLE_EQ(times.total_s(), 11.0);
}

// The paper's largest: 1296^3 on 27 ranks sends 1.29 GB a rank.
TEST(Fourier, BuffersOfThePaper) {
  EXPECT_EQ(*FourierSendBytes({1296, 27, 32}), int64_t{48} * 1296 * 1296 * 16);
  EXPECT_NEAR(static_cast<double>(*FourierSendBytes({1296, 27, 32})) / 1e9, 1.29, 0.005);
}

TEST(Fourier, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(FourierSendBytes({0, 3, 1}).error().message, testing::HasSubstr("0^3 on 3 ranks"));
  EXPECT_THAT(TimeOfFourier({4, 5, 1}, {}, 0).error().message,
              testing::HasSubstr("4 planes are too few for 5 ranks"));
}

}  // namespace
}  // namespace tutti

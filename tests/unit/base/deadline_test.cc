#include "tutti/base/deadline.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Deadline, NoneNeverPasses) {
  const Deadline none(0);
  EXPECT_FALSE(none.HasPassed());
  EXPECT_EQ(none.Left(), 0);
}

TEST(Deadline, LeavesMoreThanNothingOnceItHasPassed) {
  const Deadline passed(1e-12);
  while (!passed.HasPassed()) {
  }
  EXPECT_GT(passed.Left(), 0);
  EXPECT_LT(passed.Left(), 1e-3);
}

TEST(Deadline, LeavesLessAndLess) {
  const Deadline far(1e6);
  EXPECT_FALSE(far.HasPassed());
  const double before = far.Left();
  EXPECT_LE(before, 1e6);
  EXPECT_LE(far.Left(), before);
}

}  // namespace
}  // namespace tutti

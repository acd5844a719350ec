#include "tutti/base/progress.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace tutti {
namespace {

TEST(Progress, InnerScopesArePartOfTheUnitAroundThem) {
  EXPECT_EQ(CurrentProgress().task, nullptr);
  ProgressScope outer("outer", 4);
  outer.Add(1);
  EXPECT_STREQ(CurrentProgress().task, "outer");
  EXPECT_DOUBLE_EQ(CurrentProgress().part, 0.25);
  {
    ProgressScope inner("inner", 2);
    inner.Add(1);
    EXPECT_STREQ(CurrentProgress().task, "outer");
    EXPECT_DOUBLE_EQ(CurrentProgress().part, 0.375);
  }
  EXPECT_DOUBLE_EQ(CurrentProgress().part, 0.375);  // it never falls
}

TEST(Progress, ALoopCountsEachStepHoweverItsBodyEnds) {
  constexpr std::array<int, 4> kValues = {3, 1, 4, 1};
  std::vector<int> seen;
  std::vector<double> parts;
  for (const int value : WithProgress("values", kValues)) {
    seen.push_back(value);
    parts.push_back(CurrentProgress().part);
    if (value == 1) continue;
    EXPECT_STREQ(CurrentProgress().task, "values");
  }
  EXPECT_EQ(seen, (std::vector<int>{3, 1, 4, 1}));
  EXPECT_EQ(parts, (std::vector<double>{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(CurrentProgress().task, nullptr);
}

}  // namespace
}  // namespace tutti

#include "tutti/base/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace tutti {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"torus", "ring", "biring", "direct-table5",
                                                    "direct-table6"};

TEST(NearestTest, FewestChangesFirst) {
  EXPECT_EQ(NearestHint("tours", kNames), "; nearest: torus");
  EXPECT_EQ(NearestHint("rin", kNames), "; nearest: biring, ring");  // a part of both
  EXPECT_EQ(NearestHint("table", kNames), "; nearest: direct-table5, direct-table6");
  EXPECT_EQ(NearestHint("table6", kNames), "; nearest: direct-table6");
}

TEST(NearestTest, NothingNearGivesNothing) {
  EXPECT_EQ(NearestHint("hypercube", kNames), "");
  EXPECT_EQ(NearestHint("", kNames), "");
  EXPECT_EQ(NearestHint(std::string(100'000, 'x'), kNames), "");
  EXPECT_EQ(NearestHint("torus", {}), "");
}

}  // namespace
}  // namespace tutti

// The limit of step schedules with barriers: alphas and bytes added up, on any network.
#include <gtest/gtest.h>

#include "tutti/bounds/bounds.h"

namespace tutti {
namespace {

constexpr int64_t kSecond = 1'000'000'000'000;

// 0 -> 1 -> 2 -> 0, the links at 1, 2 and 4 bytes a second with alphas of 3, 1 and 2 seconds.
Topology UnequalRing() {
  Topology::Builder builder(3);
  for (int32_t u = 0; u < 3; ++u)
    builder.AddLink(NodeId{u}, NodeId{(u + 1) % 3},
                    {.bandwidth = int64_t{1} << u, .alpha_ps = (u == 0 ? 3 : u) * kSecond});
  return *std::move(builder).Build();
}

TEST(StepLimitTest, AddsTheSmallestAlphaOfEveryStep) {
  const Topology topology = UnequalRing();
  const Result<Bounds> bounds =
      ComputeBounds(topology, *Collective::Make(CollectiveKind::kAllGather, 3));
  ASSERT_TRUE(bounds.has_value());
  // Two of three shards over the link of 1 byte a second; two steps; the longest way has 3 + 2.
  EXPECT_EQ(bounds->seconds_per_byte, Rational(2, 3));
  EXPECT_EQ(bounds->steps, 2);
  EXPECT_EQ(bounds->latency_ps, 5 * kSecond);
  EXPECT_EQ(bounds->Limit(30), Rational(1 + 20));
  EXPECT_EQ(bounds->StepLimit(30), Rational(2 + 20));
  EXPECT_EQ(bounds->StepLimit(30, 7), Rational(7 + 20));
  EXPECT_EQ(bounds->StepLimit(3), Rational(5));  // the latency alone is longer
}

TEST(StepLimitTest, IsTheSumWhereAllLinksAreEqualAndNothingForOneRank) {
  Topology::Builder builder(3);
  for (int32_t u = 0; u < 3; ++u)
    builder.AddLink(NodeId{u}, NodeId{(u + 1) % 3}, {.bandwidth = 2, .alpha_ps = kSecond});
  const Topology ring = *std::move(builder).Build();
  const Result<Bounds> bounds =
      ComputeBounds(ring, *Collective::Make(CollectiveKind::kAllGather, 3));
  ASSERT_TRUE(bounds.has_value());
  EXPECT_EQ(bounds->StepLimit(6), Rational(4));
  const Topology alone = *Topology::Builder(1).Build();
  const Result<Bounds> nothing =
      ComputeBounds(alone, *Collective::Make(CollectiveKind::kAllGather, 1));
  ASSERT_TRUE(nothing.has_value());
  EXPECT_EQ(nothing->StepLimit(6), Rational(0));
}

}  // namespace
}  // namespace tutti

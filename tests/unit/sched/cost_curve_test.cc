// Costs as functions of the size, and which is least where: by hand, against the formula at single
// sizes, against all sizes one by one.
#include <gtest/gtest.h>

#include <vector>

#include "sched_testing.h"
#include "tutti/sched/cost.h"

namespace tutti {
namespace {

CostCurve Line(int64_t fixed, int64_t slope) { return {{0, fixed, slope}}; }

TEST(CostCurveTest, EqualLinksMakeOneLine) {
  const Topology topology = K22();
  // 2 alpha + 3/4 M / B for B = 100 GB/s: figure 1 of [direct-connect].
  const CostCurve curve = AnalyticCurve(topology, K22AllGather(topology));
  ASSERT_EQ(curve.size(), 1u);
  EXPECT_EQ(curve[0], (CostPiece{0, Rational(1, 1'000'000), Rational(3, 400'000'000'000)}));
}

TEST(CostCurveTest, TheLinkThatAStepWaitsForChangesWithTheSize) {
  Topology::Builder builder(2);
  builder.AddLink(Node(0), Node(1), {.bandwidth = 4, .alpha_ps = 3'000'000'000'000});
  builder.AddLink(Node(0), Node(1), {.bandwidth = 1, .alpha_ps = 0});
  builder.AddLink(Node(1), Node(0), {.bandwidth = 2, .alpha_ps = 1'000'000'000'000});
  const Topology topology = Must(std::move(builder).Build());
  Schedule schedule = EmptySchedule(topology, CollectiveKind::kAllGather);
  schedule.num_steps = 2;
  schedule.units_per_shard = 2;
  schedule.transfers = {{ShardId{0}, LinkId{0}, 0, 1, 0, TransferOp::kCopy},
                        {ShardId{0}, LinkId{1}, 1, 2, 0, TransferOp::kCopy},
                        {ShardId{1}, LinkId{2}, 0, 2, 1, TransferOp::kCopy}};
  // Step 0: max(3 + M/16, M/4), which meet at 16; step 1: 1 + M/4.
  const CostCurve curve = AnalyticCurve(topology, schedule);
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[0], (CostPiece{0, 4, Rational(5, 16)}));
  EXPECT_EQ(curve[1], (CostPiece{16, 1, Rational(1, 2)}));
}

TEST(CostCurveTest, AScheduleWithoutTransfersIsFree) {
  const CostCurve curve = AnalyticCurve(K22(), EmptySchedule(K22(), CollectiveKind::kAllGather));
  EXPECT_EQ(curve, (CostCurve{{0, 0, 0}}));
}

TEST(CostCurveTest, AgreesWithTheFormulaAtEverySize) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random rng(seed);
    Topology::Builder builder(3);
    for (int32_t u = 0; u < 3; ++u)
      for (int32_t v = 0; v < 3; ++v)
        if (u != v)
          builder.AddLink(Node(u), Node(v),
                          {.bandwidth = 1 + static_cast<int64_t>(rng.Below(9)),
                           .alpha_ps = static_cast<int64_t>(rng.Below(50)) * 1'000'000'000'000});
    const Topology topology = Must(std::move(builder).Build());
    Schedule schedule = EmptySchedule(topology, CollectiveKind::kAllGather);
    schedule.num_steps = 4;
    schedule.units_per_shard = 4;
    for (int32_t step = 0; step < 4; ++step)
      for (int32_t k = 0; k < 3; ++k) {
        const auto end = static_cast<int32_t>(1 + rng.Below(4));
        schedule.transfers.push_back({ShardId{k}, LinkId{static_cast<int32_t>(rng.Below(6))}, 0,
                                      end, step, TransferOp::kCopy});
      }
    const CostCurve curve = AnalyticCurve(topology, schedule);
    for (int64_t size = 1; size < 400; ++size)
      ASSERT_EQ(SecondsAt(curve, size), AnalyticSeconds(topology, schedule, size))
          << "seed " << seed << " size " << size;
  }
}

TEST(LeastCurvesTest, TwoLinesMeetWhereTheyAreEqual) {
  const std::vector<CostCurve> curves{Line(10, 1), Line(3, 4)};
  const std::vector<LeastRange> ranges = LeastCurves(curves, 0);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].curve, 1u);
  EXPECT_EQ(ranges[1].curve, 0u);
  EXPECT_EQ(ranges[1].from_bytes, Rational(7, 3));
  EXPECT_EQ(LeastCurves(curves, 5).size(), 1u);
}

TEST(LeastCurvesTest, OfEqualOnesTheFirst) {
  const std::vector<CostCurve> curves{Line(5, 2), Line(5, 2), Line(5, 1)};
  std::vector<LeastRange> ranges = LeastCurves(std::span(curves).first(2), 0);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].curve, 0u);
  // Equal at 0, less right behind.
  ranges = LeastCurves(curves, 0);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].curve, 2u);
}

TEST(LeastCurvesTest, ACurveMayBeLeastTwice) {
  // max(M, 4M - 30) is below 8 + M/2 up to 76/7, and a flat 100 is least at last.
  const std::vector<CostCurve> curves{{{0, 0, 1}, {10, -30, 4}},
                                      {{0, 8, Rational(1, 2)}, {40, -152, Rational(9, 2)}},
                                      Line(100, 0)};
  const std::vector<LeastRange> ranges = LeastCurves(curves, 0);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[1].from_bytes, Rational(76, 7));
  EXPECT_EQ(ranges[2].from_bytes, Rational(56));
}

TEST(LeastCurvesTest, AgreesWithAllSizesOneByOne) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random rng(seed);
    std::vector<CostCurve> curves;
    for (int k = 0; k < 5; ++k) {
      CostCurve curve{{0, static_cast<int64_t>(rng.Below(60)), static_cast<int64_t>(rng.Below(4))}};
      for (uint64_t bends = rng.Below(4); bends > 0; --bends) {
        const CostPiece& last = curve.back();
        const Rational at = last.from_bytes + Rational(1 + static_cast<int64_t>(rng.Below(20)));
        const Rational slope = last.seconds_per_byte + Rational(static_cast<int64_t>(rng.Below(3)));
        curve.push_back({at, last.At(at) - slope * at, slope});
      }
      curves.push_back(std::move(curve));
    }
    const std::vector<LeastRange> ranges = LeastCurves(curves, 0);
    size_t range = 0;
    for (int64_t quarter = 0; quarter < 800; ++quarter) {
      const Rational bytes(quarter, 4);
      while (range + 1 < ranges.size() && ranges[range + 1].from_bytes <= bytes) ++range;
      const Rational least = SecondsAt(curves[ranges[range].curve], bytes);
      for (const CostCurve& curve : curves)
        ASSERT_LE(least, SecondsAt(curve, bytes))
            << "seed " << seed << " bytes " << bytes.ToString();
    }
    for (size_t k = 1; k < ranges.size(); ++k) {
      EXPECT_NE(ranges[k].curve, ranges[k - 1].curve);
      EXPECT_GT(ranges[k].from_bytes, ranges[k - 1].from_bytes);
      EXPECT_EQ(SecondsAt(curves[ranges[k].curve], ranges[k].from_bytes),
                SecondsAt(curves[ranges[k - 1].curve], ranges[k].from_bytes));
    }
  }
}

}  // namespace
}  // namespace tutti

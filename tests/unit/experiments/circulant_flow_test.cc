#include "alltoall_mcf/circulant_flow.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tutti/flow/concurrent_flow.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using direct::CirculantFlow;

// By hand: in circulant(5,1,2) every rank is next to every other, so f = 1. In circulant(8,1,3) the
// ranks 1, 3, 5, 7 further on are one stride away (two of each kind) and 2, 4, 6 two: of either or
// of both kinds, 2 = 1 + 1 = 3 + 7 - 8, so that both kinds carry 5 and f = 2/5.
TEST(CirculantFlowTest, WorkedExamples) {
  EXPECT_EQ(*CirculantFlow(5, 1, 2), Rational(1));
  EXPECT_EQ(*CirculantFlow(8, 1, 3), Rational(2, 5));
}

// 32/N^2 for strides 1 and 3, which is the paper's 10738 us at N = 1024.
TEST(CirculantFlowTest, ShiftedRingOf1024) {
  EXPECT_EQ(*CirculantFlow(1024, 1, 3), Rational(32, 1024 * 1024));
}

TEST(CirculantFlowTest, LiesBetweenTheProvenLimitsOfTheGeneralSolver) {
  for (int32_t n = 5; n <= 26; ++n)
    for (int32_t a = 1; 2 * a < n; ++a)
      for (int32_t b = a + 1; 2 * b < n; b += 2) {
        const Result<Rational> exact = CirculantFlow(n, a, b);
        const Result<Topology> topology =
            ParseTopology(fmt::format("circulant({},{},{})", n, a, b));
        ASSERT_EQ(exact.has_value(), topology.has_value()) << n << " " << a << " " << b;
        if (!exact) continue;
        const Result<ConcurrentFlow> flow =
            SolveConcurrentFlow(*topology, {.gap = 1e-2, .max_passes = 200, .demand = {}});
        ASSERT_TRUE(flow.has_value());
        EXPECT_LE(flow->f_lower, *exact) << topology->name();
        EXPECT_GE(flow->f_upper, *exact) << topology->name();
      }
}

TEST(CirculantFlowTest, WhatIsNoFourRegularConnectedCirculantIsRefused) {
  struct Case {
    int32_t n, a, b;
  };
  for (const Case& c : {Case{4, 1, 2}, Case{8, 1, 4}, Case{8, 4, 1}, Case{9, 1, 1}, Case{9, 1, 8},
                        Case{9, 3, 6}, Case{10, 2, 4}, Case{9, 0, 1}, Case{9, 1, 9}}) {
    const Result<Rational> flow = CirculantFlow(c.n, c.a, c.b);
    ASSERT_FALSE(flow.has_value()) << c.n << " " << c.a << " " << c.b;
    EXPECT_EQ(flow.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace tutti

// The all-to-all flow values that the direct-connect paper prints in table 7, certified.

#include "concurrent_flow_testing.h"

namespace tutti {
namespace {

struct PaperValue {
  const char* expression;
  double f;      // three digits
  double digit;  // the last of them
};

TEST(ConcurrentFlowSlow, TableSevenToItsThreeDigits) {
  const PaperValue values[] = {
      {"line(bipartite(4))", 5.71e-2, 1e-4},
      {"distreg(ag24minus)", 5.26e-2, 1e-4},
      {"genkautz(4,64)", 2.17e-2, 1e-4},
      {"line(debruijn_mod(4,2))", 2.21e-2, 1e-4},
      {"power(diamond,2)", 1.87e-2, 1e-4},
      {"line(bipartite(4),2)", 9.89e-3, 1e-5},
      {"line(distreg(ag24minus))", 9.26e-3, 1e-5},
      {"product(biring(2,8),power(uniring(1,4),2))", 5.21e-3, 1e-5},
      {"debruijn(4,4)", 4.04e-3, 1e-5},
      {"line(debruijn_mod(4,2),2)", 4.10e-3, 1e-5},
      {"line(power(diamond,2))", 3.62e-3, 1e-5},
      {"power(debruijn_mod(2,4),2)", 2.94e-3, 1e-5},
      {"line(bipartite(4),3)", 1.88e-3, 1e-5},
      {"line(distreg(ag24minus),2)", 1.78e-3, 1e-5},
      {"line(product(power(uniring(1,4),3),uniring(1,2)))", 1.12e-3, 1e-5},
      {"product(power(uniring(1,4),3),uniring(1,8))", 5.58e-4, 1e-6},
      {"genkautz(4,1024)", 8.01e-4, 1e-6},
      {"line(power(diamond,2),2)", 7.34e-4, 1e-6},
      {"line(power(debruijn_mod(2,4),2))", 6.18e-4, 1e-6},
      {"power(product(uniring(1,4),uniring(1,8)),2)", 2.79e-4, 1e-6},
  };
  for (const PaperValue& value : values) {
    const ConcurrentFlow flow = MustSolve(value.expression, 5e-4);
    EXPECT_LE(flow.f_lower.ToDouble(), value.f + 0.5 * value.digit) << value.expression;
    EXPECT_GE(flow.f_upper.ToDouble(), value.f - 0.5 * value.digit) << value.expression;
    // The limits themselves are closer to each other than a digit.
    EXPECT_LE((flow.f_upper - flow.f_lower).ToDouble(), 0.5 * value.digit) << value.expression;
  }
}

TEST(ConcurrentFlowSlow, OneFigureOfTableSevenIsMoreThanItsNetworkCarries) {
  // The paper has 8.12e-4. The distances alone allow 8.095e-4 (the answer without a pass), the flow
  // reaches 7.85e-4.
  const Topology topology = Parse("line(circulant(16,3,4),3)");
  ConcurrentFlowOptions options;
  options.max_passes = 0;
  const Result<ConcurrentFlow> distances = SolveConcurrentFlow(topology, options);
  ASSERT_TRUE(distances.has_value());
  EXPECT_TRUE(CheckConcurrentFlow(topology, *distances).has_value());
  EXPECT_EQ(distances->f_upper, Rational(64, 79063));
  EXPECT_LT(distances->f_upper.ToDouble(), 8.12e-4 - 0.5e-6);
  const ConcurrentFlow flow = MustSolve("line(circulant(16,3,4),3)", 5e-4);
  EXPECT_LE(flow.f_lower.ToDouble(), 7.855e-4);
  EXPECT_GE(flow.f_upper.ToDouble(), 7.845e-4);
}

}  // namespace
}  // namespace tutti

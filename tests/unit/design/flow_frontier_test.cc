// The frontier in TL, TB and f.
#include "tutti/design/flow_frontier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tutti/flow/concurrent_flow.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

constexpr double kGap = 1e-3;

FlowFrontier MustFind(int32_t ranks, int32_t degree, bool bidirectional) {
  Result<FlowFrontier> found = FindFlowFrontier({.ranks = ranks,
                                                 .degree = degree,
                                                 .bidirectional_only = bidirectional,
                                                 .collective = CollectiveKind::kAllReduce,
                                                 .bases = {}},
                                                kGap);
  EXPECT_TRUE(found.has_value()) << (found ? "" : found.error().message);
  return *std::move(found);
}

// Of 5 ranks with 4 ports the complete graph is best in everything: f 1.
TEST(FlowFrontierTest, ByHand) {
  const FlowFrontier frontier = MustFind(5, 4, true);
  ASSERT_EQ(frontier.designs.size(), 1u);
  EXPECT_EQ(frontier.designs[0].f_upper, Rational(1));
  EXPECT_EQ(frontier.designs[0].design.CostOf(CollectiveKind::kAllReduce),
            (DesignCost{2, Rational(8, 5)}));
}

TEST(FlowFrontierTest, HoldsTheOtherFrontierOrSomethingNoWorse) {
  for (const auto& [ranks, degree] :
       std::vector<std::pair<int32_t, int32_t>>{{12, 4}, {16, 4}, {18, 4}, {8, 2}}) {
    SCOPED_TRACE(ranks);
    const FlowFrontier frontier = MustFind(ranks, degree, true);
    const Result<std::vector<Design>> flat = FindFrontier({.ranks = ranks,
                                                           .degree = degree,
                                                           .bidirectional_only = true,
                                                           .collective = CollectiveKind::kAllReduce,
                                                           .bases = {}});
    ASSERT_TRUE(flat.has_value());
    EXPECT_GE(frontier.designs.size(), flat->size());
    EXPECT_LE(frontier.solved, frontier.looked_at);
    for (const Design& design : *flat) {
      const DesignCost cost = design.CostOf(CollectiveKind::kAllReduce);
      EXPECT_TRUE(std::any_of(frontier.designs.begin(), frontier.designs.end(),
                              [&](const DesignWithFlow& other) {
                                return other.design.CostOf(CollectiveKind::kAllReduce) == cost;
                              }))
          << design.recipe;
    }
    for (size_t i = 0; i < frontier.designs.size(); ++i) {
      const DesignWithFlow& one = frontier.designs[i];
      const DesignCost cost = one.design.CostOf(CollectiveKind::kAllReduce);
      // f is what the flow says of the network that the recipe makes.
      const Result<ConcurrentFlow> flow =
          SolveConcurrentFlow(*ParseTopology(one.design.recipe), {.gap = kGap});
      ASSERT_TRUE(flow.has_value());
      EXPECT_EQ(flow->f_lower, one.f_lower);
      EXPECT_LE(one.f_lower, one.f_upper);
      for (size_t j = 0; j < frontier.designs.size(); ++j) {
        const DesignCost other = frontier.designs[j].design.CostOf(CollectiveKind::kAllReduce);
        if (i == j || other.tl > cost.tl || other.tb > cost.tb) continue;
        EXPECT_LT(frontier.designs[j].f_upper, one.f_lower);
      }
    }
  }
}

TEST(FlowFrontierTest, RefusesAsTheOtherFrontierDoes) {
  EXPECT_EQ(FindFlowFrontier({.ranks = 1, .degree = 4, .bases = {}}, kGap).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      FindFlowFrontier({.ranks = 7, .degree = 3, .bidirectional_only = true, .bases = {}}, kGap)
          .error()
          .code,
      ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tutti

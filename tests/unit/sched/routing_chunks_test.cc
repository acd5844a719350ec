#include "tutti/sched/routing_chunks.h"

#include <gmock/gmock.h>

#include <numeric>
#include <utility>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/routing.h"

namespace tutti {
namespace {

using testing::ElementsAre;

// Two ranks, three parallel links each way, weights as given over them.
Topology ThreeLinks() { return *ParseTopology("biring(6,2)"); }

Routing OverThreeLinks(const Topology& topology, int64_t units,
                       const std::vector<int64_t>& weights) {
  RoutingBuilder builder(2, units);
  for (int32_t s = 0; s < 2; ++s)
    for (int32_t d = 0; d < 2; ++d) {
      if (s != d)
        for (size_t i = 0; i < weights.size(); ++i)
          builder.AddPath(std::vector{topology.OutLinks(NodeId{s})[static_cast<int32_t>(i)]},
                          weights[i]);
      builder.EndPair();
    }
  Routing routing = std::move(builder).Finish();
  routing.topology_fingerprint = topology.Fingerprint();
  return routing;
}

TEST(RoutingChunks, DividesByTheHighestCommonFactor) {
  const Topology topology = ThreeLinks();
  Routing routing = OverThreeLinks(topology, 60, {30, 18, 12});
  const Rational rate = RoutingRate(topology, routing);
  DivideByCommonFactor(routing);
  EXPECT_EQ(routing.units_per_demand, 10);
  EXPECT_THAT(routing.weight, ElementsAre(5, 3, 2, 5, 3, 2));
  EXPECT_EQ(RoutingRate(topology, routing), rate);
}

TEST(RoutingChunks, KeepsTheHeaviestInProportion) {
  const Topology topology = ThreeLinks();
  const Routing routing = OverThreeLinks(topology, 10, {3, 1, 6});
  const Routing kept = KeepHeaviestPaths(routing, 2);
  EXPECT_TRUE(CheckRouting(topology, kept).verified());
  // 6 : 3 of 10.
  EXPECT_THAT(kept.weight, ElementsAre(3, 7, 3, 7));
  EXPECT_EQ(RateLoss(topology, routing, kept), Rational(1, 7));
  EXPECT_EQ(KeepHeaviestPaths(routing, 3).num_paths(), 6);
  EXPECT_THAT(KeepHeaviestPaths(routing, 1).weight, ElementsAre(10, 10));
}

TEST(RoutingChunks, RoundsToTheBestNumberOfChunks) {
  const Topology topology = ThreeLinks();
  // Thirds: of 4 chunks one link takes two, of 3 each takes one.
  const Routing routing = OverThreeLinks(topology, 300, {101, 100, 99});
  const Routing rounded = LimitUnits(topology, routing, 4);
  EXPECT_TRUE(CheckRouting(topology, rounded).verified());
  EXPECT_EQ(rounded.units_per_demand, 3);
  EXPECT_THAT(rounded.weight, ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_EQ(RateLoss(topology, routing, rounded), Rational(-1, 100));
  EXPECT_EQ(LimitUnits(topology, routing, 300), routing);
  EXPECT_EQ(LimitUnits(topology, routing, 1).num_paths(), 2);
}

TEST(RoutingChunks, RandomWeightsKeepTheSumsAndLoseLittle) {
  const Topology topology = ThreeLinks();
  Random random(7);
  for (int seed = 0; seed < 200; ++seed) {
    const auto a = static_cast<int64_t>(1 + random.Below(1'000'000));
    const auto b = static_cast<int64_t>(1 + random.Below(1'000'000));
    const auto c = static_cast<int64_t>(1 + random.Below(1'000'000));
    const Routing routing = OverThreeLinks(topology, a + b + c, {a, b, c});
    const int64_t most = 1 + static_cast<int64_t>(random.Below(100));
    const Routing rounded = LimitUnits(topology, routing, most);
    ASSERT_TRUE(CheckRouting(topology, rounded).verified());
    EXPECT_LE(rounded.units_per_demand, most);
    // The busiest link carries at least a third; rounding adds less than a chunk.
    EXPECT_LT(RateLoss(topology, routing, rounded), Rational(3, most / 2 + 1));
  }
}

}  // namespace
}  // namespace tutti

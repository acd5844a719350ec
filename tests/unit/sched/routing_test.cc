#include "tutti/sched/routing.h"

#include <gtest/gtest.h>

#include "support/build.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using test_support::LinkOf;

// A ring of three: each pair over the direct link, but 0 to 2, which sends a third the other way.
TEST(Routing, OfATriangleByHand) {
  const Topology ring = *ParseTopology("ring(3)");
  RoutingBuilder builder(3, 3);
  for (int32_t source = 0; source < 3; ++source)
    for (int32_t destination = 0; destination < 3; ++destination) {
      if (source != destination) {
        const bool split = source == 0 && destination == 2;
        builder.AddPath(std::vector{LinkOf(ring, source, destination)}, split ? 2 : 3);
        if (split) builder.AddPath(std::vector{LinkOf(ring, 0, 1), LinkOf(ring, 1, 2)}, 1);
      }
      builder.EndPair();
    }
  const Routing routing = std::move(builder).Finish();

  EXPECT_EQ(routing.num_paths(), 7);
  EXPECT_EQ(routing.Paths(NodeId{1}, NodeId{1}).size(), 0);
  ASSERT_EQ(routing.Paths(NodeId{0}, NodeId{2}).size(), 2);
  EXPECT_EQ(routing.Hops(routing.Paths(NodeId{0}, NodeId{2})[1]).size(), 2U);
  const std::vector<int64_t> units = LinkUnits(ring, routing);
  EXPECT_EQ(units[LinkOf(ring, 0, 1).index()], 4);
  EXPECT_EQ(units[LinkOf(ring, 0, 2).index()], 2);
  EXPECT_EQ(units[LinkOf(ring, 2, 0).index()], 3);
  // The link 0 -> 1 carries 4/3 of a pair's data.
  EXPECT_EQ(RoutingRate(ring, routing), Rational(3, 4));
}

// Twice the demand from 0 to 1, half of it from 1 to 0: mean 1 off the diagonal.
TEST(Routing, RateCountsDemandsScaledToMeanOne) {
  const Topology pair = *ParseTopology("complete(2)");
  RoutingBuilder builder(2, 1);
  builder.EndPair();
  builder.AddPath(std::vector{LinkOf(pair, 0, 1)}, 3);
  builder.EndPair();
  builder.AddPath(std::vector{LinkOf(pair, 1, 0)}, 1);
  builder.EndPair();
  builder.EndPair();
  Routing routing = std::move(builder).Finish();
  routing.demand = {0, 3, 1, 0};
  EXPECT_EQ(RoutingRate(pair, routing), Rational(2, 3));
}

}  // namespace
}  // namespace tutti

// Conjecture 1 of [direct-connect], "any circulant graph has a bandwidth-optimal BFB schedule", is
// proved there for degree 4. From degree 6 on it does not hold.
#include <gtest/gtest.h>

#include "tutti/coll/collective.h"
#include "tutti/synth/bfb.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

Rational TbOf(const char* expression) {
  const Result<Topology> topology = ParseTopology(expression);
  EXPECT_TRUE(topology) << expression;
  const Result<Collective> collective =
      Collective::Make(CollectiveKind::kAllGather, topology->num_ranks());
  const Result<BfbCost> cost = ComputeBfbCost(*topology, *collective, {});
  EXPECT_TRUE(cost) << expression;
  return *cost->tb;
}

// circulant(15,1,4,5): rank 0 hears of its 6 neighbours in step 1, of the other 8 ranks in step 2,
// and those come over
//     2: {1}   7: {11}   8: {4}   13: {14}   3: {4, 14}   12: {1, 11}
//     6: {1, 5, 10, 11}  9: {4, 5, 10, 14}
// Six of the eight need one of the four links 1, 4, 11, 14: 6/4 shards on one of them, not 8/6.
TEST(BfbCirculant, OfDegreeSixIsNotAlwaysBandwidthOptimal) {
  EXPECT_EQ(TbOf("circulant(15,1,4,5)"), Rational(6, 15) * (Rational(1) + Rational(6, 4)));
  EXPECT_EQ(TbOf("circulant(15,1,4,5)"), Rational(1));
  // Others of the same size are.
  EXPECT_EQ(TbOf("circulant(15,1,2,4)"), Rational(14, 15));
  // The smallest of degree 8, and what happens to most sizes later.
  EXPECT_EQ(TbOf("circulant(12,1,3,4,5)"), Rational(1));
  EXPECT_EQ(TbOf("circulant(25,1,3,4)"), Rational(1));
}

}  // namespace
}  // namespace tutti

// Limits of networks whose ranks are all alike, against those of the general search.
#include <gtest/gtest.h>

#include <string>

#include "support/build.h"
#include "support/parse.h"
#include "tutti/bounds/bounds.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using test_support::MustMake;
using test_support::Parse;
using Kind = CollectiveKind;

TEST(TransitiveBounds, AreThoseOfTheGeneralSearchOnEqualLinks) {
  for (const char* expression :
       {"ring(1)", "ring(2)", "ring(7)", "uniring(1,5)", "uniring(3,4)", "torus(4,3,2)",
        "hypercube(4)", "complete(5)", "bipartite(3)", "hamming(2,3)", "circulant(13,2,3)",
        "dircirculant(3)", "twisted_torus(6,3)", "degree(ring(4),2)", "kautz(2,1)",
        "product(ring(3),complete(4))", "torus(3,3,parallel=2)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce}) {
      const Collective collective = MustMake(kind, topology.num_ranks());
      const Result<Bounds> fast = ComputeTransitiveBounds(topology, collective);
      const Result<Bounds> slow = ComputeBounds(topology, collective);
      ASSERT_TRUE(fast.has_value() && slow.has_value());
      EXPECT_EQ(fast->steps, slow->steps);
      EXPECT_EQ(fast->latency_ps, slow->latency_ps);
      EXPECT_EQ(fast->seconds_per_byte, slow->seconds_per_byte) << Name(kind);
      EXPECT_EQ(fast->tb, slow->tb);
      EXPECT_EQ(fast->ideal_seconds_per_byte, slow->ideal_seconds_per_byte);
      EXPECT_EQ(fast->rsag_seconds_per_byte, slow->rsag_seconds_per_byte);
      EXPECT_EQ(fast->min_alpha_ps, slow->min_alpha_ps);
      EXPECT_EQ(fast->cut.has_value(), slow->cut.has_value() && kind != Kind::kAllReduce);
    }
  }
}

// A cable of 100 across each pair and of 1 around: what leaves a pair decides, which the cut around
// one rank does not see. It stays a limit.
TEST(TransitiveBounds, ClaimNoMoreThanTheGeneralSearchOnUnequalLinks) {
  for (const char* expression :
       {"torus(4,2,bw=[1,100]GB/s)", "torus(3,4,bw=[1,2]GB/s,alpha=[1,9]us)",
        "product(uniring(1,3),uniring(1,4),bw=[1,7]GB/s)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce}) {
      const Collective collective = MustMake(kind, topology.num_ranks());
      const Result<Bounds> fast = ComputeTransitiveBounds(topology, collective);
      const Result<Bounds> slow = ComputeBounds(topology, collective);
      ASSERT_TRUE(fast.has_value() && slow.has_value());
      EXPECT_EQ(fast->steps, slow->steps);
      EXPECT_EQ(fast->latency_ps, slow->latency_ps);
      EXPECT_LE(fast->seconds_per_byte, slow->seconds_per_byte);
      EXPECT_LE(fast->tb, slow->tb);
    }
  }
}

TEST(TransitiveBounds, Refuses) {
  const Topology ring = Parse("ring(4)");
  EXPECT_FALSE(ComputeTransitiveBounds(ring, MustMake(Kind::kAllGather, 5)).has_value());
  EXPECT_FALSE(ComputeTransitiveBounds(ring, MustMake(Kind::kBroadcast, 4)).has_value());
  EXPECT_FALSE(
      ComputeTransitiveBounds(Parse("switch(4)"), MustMake(Kind::kAllGather, 4)).has_value());
}

}  // namespace
}  // namespace tutti

// The limits of an unwound network are those of the network with switches.
#include <gtest/gtest.h>

#include <string>

#include "tutti/bounds/bounds.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"
#include "tutti/topo/operators.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

Bounds MustBounds(const Topology& topology, Kind kind) {
  const Result<Bounds> bounds =
      ComputeBounds(topology, *Collective::Make(kind, topology.num_ranks()));
  EXPECT_TRUE(bounds.has_value());
  return *bounds;
}

// The same links without the name that tells where they are from.
Topology Nameless(const Topology& topology) {
  Topology::Builder builder(topology.num_ranks());
  for (LinkId link : topology.Links())
    builder.AddLink(topology.tail(link), topology.head(link), topology.spec(link));
  return *std::move(builder).Build();
}

// Eight ranks on a switch at 50 GB/s each. Degree 1 leaves a ring of the whole bandwidth, over
// which an all-to-all takes (1 + .. + 7) / 8 M at 50 GB/s; through the switch it takes 7/8 M.
TEST(UnwoundBoundsTest, AnAllToAllOfASwitchIsNotThatOfARing) {
  const Topology unwound = *ParseTopology("unwind(switch(8),degree=1)");
  const Rational gb_per_s(50'000'000'000);
  EXPECT_EQ(MustBounds(unwound, Kind::kAllToAll).seconds_per_byte, Rational(7, 8) / gb_per_s);
  EXPECT_EQ(MustBounds(Nameless(unwound), Kind::kAllToAll).seconds_per_byte,
            Rational(28, 8) / gb_per_s);
  // A switch is passed in one step and one alpha.
  const Bounds gather = MustBounds(unwound, Kind::kAllGather);
  EXPECT_EQ(gather.steps, 1);
  EXPECT_EQ(gather.latency_ps, 500'000);
  EXPECT_EQ(MustBounds(*ParseTopology("switch(8)"), Kind::kAllGather).latency_ps, 1'000'000);
}

TEST(UnwoundBoundsProperty, AreTheSameForEveryDegreeAndThroughAFile) {
  for (const std::string original :
       {"switch(5)", "switch2d(2,3,bw=[70,20]GB/s)", "rfs(2,2,4,bw=[200,100,50]GB/s)",
        "without(rfs(2,4,4,bw=[200,100,50]GB/s),links=3,seed=1)",
        "switch(4,alpha=2us,host_bw=10GB/s)"})
    for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce, Kind::kBroadcast,
                      Kind::kAllToAll}) {
      SCOPED_TRACE(original + " " + std::string(Name(kind)));
      const Topology whole = *ParseTopology(original);
      const Bounds real = MustBounds(whole, kind);
      const int64_t largest = *LargestUnwinding(whole);
      for (int64_t degree = 1; degree <= largest; ++degree) {
        const Topology unwound =
            *ParseTopology("unwind(" + original + ",degree=" + std::to_string(degree) + ")");
        const Topology from_file = *TopologyFromJson(TopologyToJson(unwound));
        const Bounds bounds = MustBounds(unwound, kind),
                     surrogate = MustBounds(Nameless(unwound), kind);
        EXPECT_EQ(bounds.seconds_per_byte, real.seconds_per_byte);
        EXPECT_EQ(MustBounds(from_file, kind).Limit(1 << 20), bounds.Limit(1 << 20));
        // What a schedule on these links cannot beat: never more than the links allow.
        EXPECT_LE(bounds.latency_ps, surrogate.latency_ps);
        EXPECT_LE(bounds.steps, surrogate.steps);
        EXPECT_LE(bounds.min_alpha_ps, surrogate.min_alpha_ps);
        // The limit of all-to-all is proven, but stops a little above the smallest.
        if (!whole.has_host_limits() && kind != Kind::kAllToAll) {
          EXPECT_LE(bounds.seconds_per_byte.ToDouble(),
                    surrogate.seconds_per_byte.ToDouble() * (1 + 1e-9));
        }
      }
    }
}

}  // namespace
}  // namespace tutti

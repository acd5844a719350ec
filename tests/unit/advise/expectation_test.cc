#include "tutti/advise/expectation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "advise_support.h"
#include "tutti/topo/symmetry.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

Result<Expectation> ExpectOn(const std::string& expression, Kind kind, int64_t size) {
  const Topology topology = Parse(expression);
  return Expect(topology, expression, FindBoxes(topology), kind, size);
}

// By hand: three steps of M/8 over every link, and a limit of 3/8 M behind one alpha.
TEST(ExpectationTest, RingOfFour) {
  const Result<Expectation> expected =
      ExpectOn("ring(4,bw=1GB/s,alpha=1us)", Kind::kAllGather, 4'000'000'000);
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  const Rational us(1, 1'000'000);
  EXPECT_EQ(expected->limit_s, Rational(3, 2) + us);
  ASSERT_TRUE(expected->ring_s && expected->best_s);
  EXPECT_FALSE(expected->ring_is_estimate);
  EXPECT_EQ(*expected->ring_s, Rational(3, 2) + Rational(3) * us);
  EXPECT_EQ(*expected->best_s, Rational(3, 2) + Rational(2) * us);
  EXPECT_EQ(expected->bus_factor, Rational(3, 4));
}

TEST(ExpectationTest, NothingIsFasterThanTheLimit) {
  for (const std::string expression :
       {"ring(5)", "dgx1", "switch(4)", "cluster(boxes=2,gpus=2)", "mesh(4)"})
    for (const Kind kind : {Kind::kAllReduce, Kind::kAllGather, Kind::kBroadcast}) {
      SCOPED_TRACE(expression);
      const Result<Expectation> expected = ExpectOn(expression, kind, 1 << 24);
      ASSERT_TRUE(expected.has_value()) << expected.error().message;
      ASSERT_TRUE(expected->best_s) << expected->reason;
      EXPECT_GE(*expected->best_s, expected->limit_s);
      ASSERT_TRUE(expected->ring_s);
      EXPECT_GE(*expected->ring_s, expected->limit_s);
      ASSERT_TRUE(expected->schedule);
      const Topology topology = Parse(expression);
      EXPECT_TRUE(Verify(expected->unwound ? *expected->unwound : topology,
                         expected->schedule->collective, *expected->schedule)
                      .verified());
    }
}

TEST(OtherWiringsTest, ALineIsBetterClosed) {
  const Result<std::vector<OtherWiring>> others = OtherWirings(Parse("mesh(4,bw=3GB/s)"));
  ASSERT_TRUE(others.has_value()) << others.error().message;
  ASSERT_EQ(others->size(), 1U);
  EXPECT_EQ(FindIsomorphism(others->front().topology, Parse("ring(4,bw=3GB/s)")).outcome,
            IsomorphismSearch::Outcome::kFound);
  EXPECT_EQ(others->front().topology.bandwidth(LinkId{0}), 3'000'000'000);
}

TEST(OtherWiringsTest, ARingOfFourIsTheBestOfTwoPorts) {
  const Result<std::vector<OtherWiring>> others = OtherWirings(Parse("ring(4)"));
  ASSERT_TRUE(others.has_value()) << others.error().message;
  EXPECT_TRUE(others->empty());
}

TEST(OtherWiringsTest, HaveAsManyRanksAndPortsAndNotOneIsTheSame) {
  for (const std::string expression : {"torus(3,4)", "ring(8)", "mesh(3,3)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    int32_t ports = 0;
    for (NodeId rank : topology.Ranks()) ports = std::max(ports, topology.out_degree(rank));
    const Result<std::vector<OtherWiring>> others = OtherWirings(topology);
    ASSERT_TRUE(others.has_value()) << others.error().message;
    for (const OtherWiring& other : *others) {
      EXPECT_EQ(other.topology.num_ranks(), topology.num_ranks());
      EXPECT_EQ(other.topology.regular_degree(), ports);
      EXPECT_NE(FindIsomorphism(topology, other.topology).outcome,
                IsomorphismSearch::Outcome::kFound);
    }
  }
}

TEST(OtherWiringsTest, SayWhyThereAreNone) {
  const auto why = [](const std::string& expression) {
    const Result<std::vector<OtherWiring>> others = OtherWirings(Parse(expression));
    EXPECT_FALSE(others.has_value()) << expression;
    return others ? std::string() : others.error().message;
  };
  EXPECT_NE(why("switch(4)").find("switches"), std::string::npos);
  EXPECT_NE(why("ring(2)").find("one way"), std::string::npos);
  EXPECT_NE(why("ring(65)").find("65 ranks"), std::string::npos);
  EXPECT_NE(why("torus(3,3,bw=[1,2]GB/s)").find("not alike"), std::string::npos);
}

}  // namespace
}  // namespace tutti

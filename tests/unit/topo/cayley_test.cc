// Metacyclic groups and their Cayley digraphs.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/metacyclic.h"

namespace tutti {
namespace {

MetacyclicGroup Group(int m, int k, int r) {
  const Result<MetacyclicGroup> group = MetacyclicGroup::Make(m, k, r);
  EXPECT_TRUE(group) << group.error().message;
  return *group;
}

// The symmetries of a triangle: a turn (1,0) and a mirror (0,1) that turns turns around.
TEST(Metacyclic, ByHand) {
  const MetacyclicGroup s3 = Group(3, 2, 2);
  EXPECT_EQ(s3.size(), 6);
  EXPECT_FALSE(s3.is_abelian());
  const int turn = s3.Element(1, 0), mirror = s3.Element(0, 1);
  EXPECT_EQ(turn, 2);
  EXPECT_EQ(mirror, 1);
  EXPECT_EQ(s3.Multiply(turn, mirror), s3.Element(1, 1));
  EXPECT_EQ(s3.Multiply(mirror, turn), s3.Element(2, 1));
  EXPECT_EQ(s3.Multiply(turn, turn), s3.Inverse(turn));
  EXPECT_EQ(s3.Inverse(mirror), mirror);
}

TEST(Metacyclic, ObeysTheLawsOfAGroup) {
  for (const auto& [m, k, r] : std::vector<std::array<int, 3>>{
           {1, 1, 1}, {1, 5, 1}, {7, 1, 1}, {4, 6, 1}, {8, 4, 3}, {7, 3, 2}, {16, 8, 11}}) {
    const MetacyclicGroup group = Group(m, k, r);
    Random random(1);
    const auto draw = [&] {
      return static_cast<int32_t>(random.Below(static_cast<uint64_t>(group.size())));
    };
    for (int i = 0; i < 200; ++i) {
      const int32_t x = draw(), y = draw(), z = draw();
      EXPECT_EQ(group.Multiply(group.Multiply(x, y), z), group.Multiply(x, group.Multiply(y, z)));
      EXPECT_EQ(group.Multiply(x, 0), x);
      EXPECT_EQ(group.Multiply(0, x), x);
      EXPECT_EQ(group.Multiply(x, group.Inverse(x)), 0);
      EXPECT_EQ(group.Multiply(group.Inverse(x), x), 0);
      if (group.is_abelian()) {
        EXPECT_EQ(group.Multiply(x, y), group.Multiply(y, x));
      }
    }
  }
}

// x -> g x maps links to links for every g.
TEST(Cayley, LeftTranslationsAreSymmetries) {
  const Result<Topology> topology = ParseTopology("cayley(8,4,3,5,0,4,1,1,3,2,0)");
  ASSERT_TRUE(topology);
  const MetacyclicGroup group = Group(8, 4, 3);
  std::set<std::pair<int32_t, int32_t>> links;
  for (LinkId link : topology->Links())
    links.emplace(topology->tail(link).value, topology->head(link).value);
  for (int32_t g = 0; g < group.size(); ++g)
    for (const auto& [tail, head] : links)
      EXPECT_TRUE(links.count({group.Multiply(g, tail), group.Multiply(g, head)}));
}

TEST(Cayley, RefusesWhatIsNone) {
  struct Case {
    const char* expression;
    const char* message;
  };
  for (const Case& wrong : std::vector<Case>{
           {"cayley(7,2,2,1,0,0,1)", "2^2 = 4 modulo 7, wanted r^k = 1 modulo m"},
           {"cayley(7,3,0,1,0,0,1)", "got r = 0, wanted 1 <= r <= 6"},
           {"cayley(7,3,7,1,0,0,1)", "got r = 7, wanted 1 <= r <= 6"},
           {"cayley(7,3,2,1,0,0)", "lacks its b"},
           {"cayley(7,3,2,1,0,7,1)", "got 7, wanted at most 6"},
           {"cayley(7,3,2,1,0,0,3)", "got 3, wanted at most 2"},
           {"cayley(7,3,2,1,0,0,0)", "the generator (0,0) is the identity"},
           {"cayley(7,3,2,1,0,0,1,1,0)", "the generator (1,0) stands there twice"},
           {"cayley(7,3,2,1,0,3,0)", "a subgroup of 7 of the 21 elements"},
           {"cayley(0,3,1,0,1)", "got 0, wanted at least 1"},
           {"cayley(2000,2000,1,1,0,0,1)", "nodes"},
       }) {
    const Result<Topology> topology = ParseTopology(wrong.expression);
    ASSERT_FALSE(topology) << wrong.expression;
    EXPECT_NE(topology.error().message.find(wrong.message), std::string::npos)
        << topology.error().message;
  }
}

TEST(Metacyclic, RefusesWhatIsTooLarge) {
  for (const auto& [m, k] : std::vector<std::array<int64_t, 2>>{
           {0, 1}, {1, 0}, {int64_t{1} << 40, 1}, {1, int64_t{1} << 62}, {2048, 1024}})
    EXPECT_FALSE(MetacyclicGroup::Make(m, k, 1));
}

}  // namespace
}  // namespace tutti

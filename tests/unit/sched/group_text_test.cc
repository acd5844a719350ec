#include "tutti/sched/group_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/parse.h"

namespace tutti::group_text_test {
namespace {

using test_support::Parse;

std::vector<int32_t> Values(const std::vector<NodeId>& ranks) {
  std::vector<int32_t> values;
  for (const NodeId rank : ranks) values.push_back(rank.value);
  return values;
}

TEST(GroupTextTest, ListsRangesAndLines) {
  const Topology network = Parse("ring(12)");
  const Result<RankGroups> groups =
      ParseGroups("0-2, 7 ; 11,4-8/2\n# none\n3,10 # two\n", network, 12);
  ASSERT_TRUE(groups.has_value()) << groups.error().message;
  ASSERT_EQ(groups->size(), 3U);
  EXPECT_EQ(Values((*groups)[0]), (std::vector<int32_t>{0, 1, 2, 7}));
  EXPECT_EQ(Values((*groups)[1]), (std::vector<int32_t>{11, 4, 6, 8}));
  EXPECT_EQ(Values((*groups)[2]), (std::vector<int32_t>{3, 10}));
}

TEST(GroupTextTest, StructureOfATorusOfTwoByThree) {
  const Topology torus = Parse("torus(2,3)");
  const auto groups = [&](const char* text) {
    std::vector<std::vector<int32_t>> values;
    const Result<RankGroups> parsed = ParseGroups(text, torus, 6);
    EXPECT_TRUE(parsed.has_value()) << text;
    for (const std::vector<NodeId>& group : *parsed) values.push_back(Values(group));
    return values;
  };
  using Groups = std::vector<std::vector<int32_t>>;
  EXPECT_EQ(groups("axis=0"), (Groups{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ(groups("axis=1"), (Groups{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(groups("axis=0+1"), (Groups{{0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(groups("every=2"), (Groups{{0, 2, 4}, {1, 3, 5}}));
  EXPECT_EQ(groups("blocks=2"), (Groups{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(groups("axis=0;axis=1").size(), 5U);
}

TEST(GroupTextTest, NamesTheFault) {
  const Topology torus = Parse("torus(2,3)"), ring = Parse("ring(6)");
  const struct {
    const Topology& network;
    const char *text, *message;
  } kBad[] = {
      {torus, "", "no groups"},
      {torus, " ; # x", "no groups"},
      {torus, "0-1;0-6", "group 1: '0-6' is no rank"},
      {torus, "3-1", "'3-1'"},
      {torus, "0-4/0", "'0-4/0'"},
      {torus, "0,,1", "'' is no rank"},
      {torus, "0,x", "'x'"},
      {torus, "axis=2", "no dimension of the grid"},
      {torus, "axis=", "no dimension"},
      {Parse("genkautz(2,6)"), "axis=0", "torus or mesh"},
      {torus, "every=4", "divides the 6 ranks"},
      {torus, "blocks=0", "divides the 6 ranks"},
      {torus, "plane=0", "every=S, blocks=K or axis=D"},
      {torus, "99999999999", "is no rank"},
  };
  for (const auto& bad : kBad) {
    const Result<RankGroups> groups = ParseGroups(bad.text, bad.network, 6);
    ASSERT_FALSE(groups.has_value()) << bad.text;
    EXPECT_NE(groups.error().message.find(bad.message), std::string::npos)
        << groups.error().message;
  }
  for (const auto& [text, message] : {std::pair("0\n1\n1\n", "two ranks of the job lie on rank 1"),
                                      std::pair("4", "at least 2"), std::pair("0\n6\n", "'6'")}) {
    const auto placed = ParsePlacement(text, ring);
    ASSERT_FALSE(placed.has_value()) << text;
    EXPECT_NE(placed.error().message.find(message), std::string::npos) << placed.error().message;
  }
}

TEST(GroupTextTest, NearestOrderFollowsTheFastLinks) {
  // Pairs (0,2) and (1,3) are joined by fast links, all others by slow ones.
  Topology::Builder builder(4);
  constexpr LinkSpec kFast{.bandwidth = 100'000'000'000, .alpha_ps = 1000},
      kSlow{.bandwidth = 1'000'000'000, .alpha_ps = 1000};
  builder.AddDuplex(NodeId{0}, NodeId{2}, kFast);
  builder.AddDuplex(NodeId{1}, NodeId{3}, kFast);
  builder.AddDuplex(NodeId{2}, NodeId{1}, kSlow);
  builder.AddDuplex(NodeId{3}, NodeId{0}, kSlow);
  const Result<Topology> network = std::move(builder).Build();
  ASSERT_TRUE(network.has_value());
  EXPECT_EQ(Values(NearestOrder(*network, 1 << 20)), (std::vector<int32_t>{0, 2, 1, 3}));
  const std::vector<NodeId> all = NearestOrder(Parse("torus(3,4)"), 1);
  std::vector<int32_t> sorted = Values(all);
  std::sort(sorted.begin(), sorted.end());
  for (int32_t rank = 0; rank < 12; ++rank) EXPECT_EQ(sorted[static_cast<size_t>(rank)], rank);
}

}  // namespace
}  // namespace tutti::group_text_test

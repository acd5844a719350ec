// The graphs found by search: diamond and debruijn_mod, as [direct-connect] Table 9 describes them.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tutti/graph/distance.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti {
namespace {

using Pairs = std::set<std::pair<int32_t, int32_t>>;

Pairs LinksOf(const Topology& topology) {
  Pairs pairs;
  for (LinkId link : topology.Links())
    pairs.emplace(topology.tail(link).value, topology.head(link).value);
  return pairs;
}

TEST(FoundGraphs, AreWhatTable9Says) {
  struct Row {
    const char* expression;
    int32_t ranks, degree, diameter;
    bool reverse_symmetric;
  };
  for (const Row& row : std::vector<Row>{{"diamond", 8, 2, 3, false},
                                         {"debruijn_mod(2,3)", 8, 2, 3, true},
                                         {"debruijn_mod(2,4)", 16, 2, 4, false},
                                         {"debruijn_mod(3,2)", 9, 3, 2, false},
                                         {"debruijn_mod(4,2)", 16, 4, 3, false}}) {
    SCOPED_TRACE(row.expression);
    const Result<Topology> topology = ParseTopology(row.expression);
    ASSERT_TRUE(topology.has_value()) << topology.error().message;
    EXPECT_EQ(topology->num_ranks(), row.ranks);
    EXPECT_EQ(topology->regular_degree(), row.degree);
    EXPECT_EQ(Diameter(*topology), row.diameter);
    // Neither self-loops nor parallel links.
    EXPECT_EQ(topology->num_links(), row.ranks * row.degree);
    EXPECT_EQ(LinksOf(*topology).size(), static_cast<size_t>(topology->num_links()));
    EXPECT_EQ(FindReverseSymmetry(*topology).outcome, row.reverse_symmetric
                                                          ? IsomorphismSearch::Outcome::kFound
                                                          : IsomorphismSearch::Outcome::kNone);
  }
}

// What is not on a self-loop or 2-cycle stays; the rest is one cycle through all ranks that were.
TEST(FoundGraphs, RewireOnlySelfLoopsAndTwoCycles) {
  for (const std::string arguments : {"(2,3)", "(2,4)", "(3,2)", "(4,2)"}) {
    SCOPED_TRACE(arguments);
    const Topology original = *ParseTopology("debruijn" + arguments);
    const Topology rewired = *ParseTopology("debruijn_mod" + arguments);
    Pairs before = LinksOf(original), after = LinksOf(rewired);
    std::set<int32_t> freed;
    for (NodeId rank : original.Ranks())
      if (!original.self_loops(rank).empty()) freed.insert(rank.value);
    Pairs kept;
    for (const auto& [tail, head] : before)
      if (before.contains({head, tail}))
        freed.insert(tail);
      else
        kept.emplace(tail, head);
    for (const auto& pair : kept) EXPECT_EQ(after.erase(pair), 1u) << pair.first;
    // One link out of each rank that lost one, and they close to one cycle.
    ASSERT_EQ(after.size(), freed.size());
    const int32_t start = *freed.begin();
    size_t length = 0;
    int32_t rank = start;
    do {
      const auto link = after.lower_bound({rank, 0});
      ASSERT_TRUE(link != after.end() && link->first == rank && freed.contains(rank));
      rank = link->second;
      ++length;
    } while (rank != start && length <= freed.size());
    EXPECT_EQ(length, freed.size());
  }
}

TEST(FoundGraphs, OtherSizesAreRefusedWithThoseThereAre) {
  for (const char* unknown : {"debruijn_mod(2,5)", "debruijn_mod(5,2)", "debruijn_mod(2,2)",
                              "debruijn_mod(1000000,1000000)"}) {
    const Result<Topology> topology = ParseTopology(unknown);
    ASSERT_FALSE(topology.has_value()) << unknown;
    EXPECT_NE(topology.error().message.find("there are (2,3), (2,4), (3,2), (4,2)"),
              std::string::npos)
        << topology.error().message;
  }
  EXPECT_FALSE(ParseTopology("debruijn_mod(2)").has_value());
  EXPECT_FALSE(ParseTopology("debruijn_mod(0,3)").has_value());
  EXPECT_FALSE(ParseTopology("diamond(8)").has_value());
}

TEST(FoundGraphs, TakeLinkParameters) {
  const Result<Topology> topology = ParseTopology("diamond(bw=25Gbit/s,alpha=1us)");
  ASSERT_TRUE(topology.has_value()) << topology.error().message;
  EXPECT_TRUE(topology->is_homogeneous());
  EXPECT_EQ(topology->bandwidth(LinkId{0}), 3'125'000'000);
  EXPECT_EQ(topology->alpha_ps(LinkId{0}), 1'000'000);
}

}  // namespace
}  // namespace tutti

// All-reduce by roots of unlike rates.
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "forest/root_rates.h"
#include "forest/tree_network.h"
#include "tutti/lp/linear_program.h"
#include "tutti/topo/properties.h"
#include "unit/synth/forest_testing.h"

namespace tutti {
namespace {

using forest_test::RandomOneWay;
using test_support::MustBuild;

// Seconds a byte of the best all-reduce by trees: the program of root_rates.h with every cut.
double LeastByAllCuts(const Topology& topology) {
  const int32_t links = topology.num_links(), ranks = topology.num_ranks();
  LinearProgram program(LinearProgram::Goal::kMaximize);
  for (int32_t column = 0; column < 2 * links + ranks; ++column)
    program.AddColumn(0, LinearProgram::kNoLimit, column < 2 * links ? 0 : 1);
  for (LinkId link : topology.Links())
    program.AddRow(-LinearProgram::kNoLimit, static_cast<double>(topology.bandwidth(link)) / 1e6,
                   {{link.value, 1}, {links + link.value, 1}});
  for (uint32_t inside = 1; inside + 1 < (1u << ranks); ++inside) {
    std::vector<LinearProgram::Entry> leaves, enters;
    for (LinkId link : topology.Links()) {
      const bool tail = ((inside >> topology.tail(link).value) & 1u) != 0;
      const bool head = ((inside >> topology.head(link).value) & 1u) != 0;
      if (tail && !head) leaves.push_back({link.value, 1});
      if (head && !tail) enters.push_back({links + link.value, 1});
    }
    for (int32_t rank = 0; rank < ranks; ++rank) {
      if (((inside >> rank) & 1u) != 0) continue;
      leaves.push_back({2 * links + rank, -1});
      enters.push_back({2 * links + rank, -1});
    }
    program.AddRow(0, LinearProgram::kNoLimit, leaves);
    program.AddRow(0, LinearProgram::kNoLimit, enters);
  }
  const Result<LpSolution> solution = program.Solve();
  EXPECT_TRUE(solution.has_value()) << (solution ? "" : solution.error().message);
  return solution ? 1 / (solution->objective * 1e6) : 0;
}

Result<std::optional<forest::RootRates>> RatesOf(const Topology& topology) {
  std::vector<LinkId> link_map;
  const Topology transpose = TransposeTopology(topology, &link_map);
  return forest::FindRootRates(topology, transpose, link_map, topology.num_ranks());
}

// 0 -> 1 carries 3 MB/s and 1 -> 0 carries 1 MB/s. A tree of either root takes both links alike, so
// nothing beats 1 MB/s.
TEST(ForestRatesTest, OfTwoRanksByHand) {
  Topology::Builder builder(2);
  builder.AddLink(NodeId{0}, NodeId{1}, {.bandwidth = 3'000'000});
  builder.AddLink(NodeId{1}, NodeId{0}, {.bandwidth = 1'000'000});
  const auto rates = RatesOf(MustBuild(std::move(builder)));
  ASSERT_TRUE(rates.has_value() && rates->has_value());
  EXPECT_GE((*rates)->seconds_per_byte, Rational(1, 1'000'000));
  EXPECT_LE((*rates)->seconds_per_byte, Rational(1001, 1'000'000'000));
}

TEST(ForestRatesTest, AgreeWithTheProgramOfAllCuts) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = RandomOneWay(seed, 7);
    const auto rates = RatesOf(topology);
    ASSERT_TRUE(rates.has_value() && rates->has_value());
    EXPECT_TRUE(forest::FlowsSuffice((*rates)->up));
    EXPECT_TRUE(forest::FlowsSuffice((*rates)->down));
    EXPECT_EQ((*rates)->up.trees_of, (*rates)->down.trees_of);
    const double least = LeastByAllCuts(topology);
    const double found = (*rates)->seconds_per_byte.ToDouble();
    EXPECT_GE(found, least * (1 - 1e-6));
    EXPECT_LE(found, least * 1.02);
  }
}

// The cuts let a switch copy, so that a rank's own link is what limits a star: M over 3 MB/s.
TEST(ForestRatesTest, SwitchesAreOnEitherSideOfACut) {
  Topology::Builder builder(4, 1);
  for (int32_t rank = 0; rank < 4; ++rank)
    builder.AddDuplex(NodeId{rank}, NodeId{4}, {.bandwidth = 3'000'000});
  const auto rates = RatesOf(MustBuild(std::move(builder)));
  ASSERT_TRUE(rates.has_value() && rates->has_value());
  EXPECT_TRUE(forest::FlowsSuffice((*rates)->up));
  EXPECT_TRUE(forest::FlowsSuffice((*rates)->down));
  EXPECT_GE((*rates)->seconds_per_byte, Rational(1, 3'000'000));
}

}  // namespace
}  // namespace tutti

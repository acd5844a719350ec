// Switches that reduce.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "forest/branching_trees.h"
#include "forest/reducing_switches.h"
#include "tutti/topo/properties.h"
#include "unit/synth/forest_testing.h"

namespace tutti {
namespace {

using classic_test::Algorithm;
using forest_test::Efficiency;
using forest_test::kAll;
using forest_test::RandomBalanced;
using forest_test::WalkBranches;
using test_support::MustBuild;
using test_support::Parse;

// A switch that adds: up goes what each rank has, down the sum, M over each link both ways, where
// without sums 14 / 8 M come into every rank.
TEST(ForestReducingTest, AStarTakesWhatItsLinksTake) {
  for (CollectiveKind kind : kAll) {
    SCOPED_TRACE(Name(kind));
    EXPECT_GE(Efficiency(Parse("switch(8,reduces=true)"), kind, int64_t{1} << 30).ToDouble(), 0.95);
  }
  const auto seconds = [](const char* text) {
    const Topology topology = Parse(text);
    const Collective collective = *Collective::Make(CollectiveKind::kAllReduce, 8);
    return PredictedSeconds(
        topology, *RunSynthesizer(Algorithm("forest"), topology, collective, {}), int64_t{1} << 30);
  };
  EXPECT_LE(seconds("switch(8,reduces=true)"), seconds("switch(8)") * Rational(60, 100));
}

TEST(ForestReducingTest, SwitchesAreRanksBehindTheRealOnes) {
  // box0.nvswitch, box1.nvswitch reduce, rail0 and rail1 do not: 4, 5 and 6, 7 of 8 nodes.
  const Topology topology = Parse("rail(2,2,reduces=[rail1,box0.nvswitch])");
  const forest::SwitchesAsRanks network = forest::WithSwitchesAsRanks(topology, 0);
  EXPECT_EQ(network.num_roots, 4);
  EXPECT_EQ(network.topology.num_ranks(), 6);
  EXPECT_EQ(network.topology.num_nodes(), topology.num_nodes());
  std::vector<std::string> names;
  for (NodeId node : network.node_of) names.push_back(topology.node_name(node));
  EXPECT_EQ(names[4], "box0.nvswitch");
  EXPECT_EQ(names[5], "rail1");
  for (LinkId link : network.topology.Links()) {
    const LinkId real = network.link_of[link.index()];
    EXPECT_EQ(topology.tail(real), network.node_of[network.topology.tail(link).index()]);
    EXPECT_EQ(topology.head(real), network.node_of[network.topology.head(link).index()]);
    EXPECT_EQ(topology.spec(real), network.topology.spec(link));
  }
  // Rails of two NICs of 50 GB/s do not bring in 101 GB/s.
  EXPECT_EQ(forest::WithSwitchesAsRanks(topology, 101'000'000'000).topology.num_ranks(), 5);
}

// Ranks 0 to 2 on the switches 3 and 4: the branch into 4, which leads to nobody, goes, the one into
// 3 stays.
TEST(ForestReducingTest, BranchesThatLeadToNobodyGo) {
  Topology::Builder builder(3, 2);
  for (int32_t rank = 0; rank < 3; ++rank)
    for (int32_t node : {3, 4}) builder.AddDuplex(NodeId{rank}, NodeId{node}, {});
  for (int32_t node : {3, 4}) builder.SetReduces(NodeId{node});
  const forest::SwitchesAsRanks network =
      forest::WithSwitchesAsRanks(MustBuild(std::move(builder)), 0);
  const std::vector<forest::RoutedTree> trees =
      forest::OnRealNodes(network, {{.root = NodeId{0},
                                     .branches = {{NodeId{0}, NodeId{3}, {LinkId{0}}},
                                                  {NodeId{0}, NodeId{4}, {LinkId{1}}},
                                                  {NodeId{3}, NodeId{1}, {LinkId{7}}},
                                                  {NodeId{3}, NodeId{2}, {LinkId{8}}}}}});
  ASSERT_EQ(trees[0].branches.size(), 3u);
  EXPECT_EQ(trees[0].branches[0].head, NodeId{3});
  EXPECT_EQ(trees[0].branches[1].head, NodeId{1});
}

// On four rails that add each tree takes one: all boxes' sums meet there, 1 / 4 of M over each NIC.
TEST(ForestReducingTest, TreesThatBranchShareTheRails) {
  const Topology topology = Parse("rail(4,4,reduces=true)");
  const std::vector<LinkId> twins = *ReverseLinks(topology);
  constexpr int32_t kTrees = 64;
  const std::vector<forest::RoutedTree> trees = forest::BranchingTrees(topology, twins, kTrees);
  ASSERT_EQ(trees.size(), static_cast<size_t>(kTrees));
  std::vector<int64_t> load(static_cast<size_t>(topology.num_links()), 0);
  for (const forest::RoutedTree& tree : trees) {
    const std::vector<bool> in =
        WalkBranches(topology, tree, [&](LinkId link, const forest::RoutedBranch&) {
          ++load[link.index()];
          ++load[twins[link.index()].index()];
        });
    for (const forest::RoutedBranch& branch : tree.branches)
      EXPECT_TRUE(topology.reduces(branch.head));
    EXPECT_EQ(std::count(in.begin(), in.begin() + topology.num_ranks(), true),
              topology.num_ranks());
  }
  for (LinkId link : topology.Links())
    if (topology.bandwidth(link) == 50'000'000'000) {
      EXPECT_LE(load[link.index()], kTrees / 4 + 2);
    }
}

TEST(ForestReducingProperty, RandomNetworksWithReducingSwitchesAreProven) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Topology plain = RandomBalanced(seed, 6, 4);
    if (!plain.has_switches()) continue;
    Random random(seed);
    Topology::Builder builder(plain.num_ranks(), plain.num_nodes() - plain.num_ranks());
    for (LinkId link : plain.Links())
      builder.AddLink(plain.tail(link), plain.head(link), plain.spec(link));
    for (NodeId node : plain.Nodes())
      if (!plain.is_rank(node) && random.Below(3) > 0) builder.SetReduces(node);
    const Topology topology = MustBuild(std::move(builder));
    for (CollectiveKind kind : kAll) {
      SCOPED_TRACE(Name(kind));
      EXPECT_LE(Efficiency(topology, kind, 1'000'000), Rational(1));
    }
  }
}

TEST(ForestReducingSlow, BoxesThatReduceInside) {
  for (const char* text :
       {"dgx_h100(2,reduces=nvswitch)", "dgx_h100(2,reduces=true)", "rail(4,4,reduces=true)"})
    for (CollectiveKind kind : kAll) {
      SCOPED_TRACE(std::string(text) + " " + std::string(Name(kind)));
      const double reached = Efficiency(Parse(text), kind, int64_t{1} << 30).ToDouble();
      EXPECT_GE(reached, 0.80);
    }
}

}  // namespace
}  // namespace tutti

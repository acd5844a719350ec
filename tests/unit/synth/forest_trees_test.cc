// Trees counted, switches taken out, trees packed: forest before any time.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "forest/exchange_packing.h"
#include "forest/packing.h"
#include "forest/rank_shifts.h"
#include "forest/routed_trees.h"
#include "forest/shifted_packing.h"
#include "forest/splitting.h"
#include "forest/tree_network.h"
#include "unit/synth/forest_testing.h"

namespace tutti {
namespace {

using forest::TreeNetwork;
using forest_test::Boxes;
using forest_test::RandomBalanced;
using forest_test::RandomOneWay;
using forest_test::TwoBoxesOnRails;
using forest_test::WalkBranches;
using test_support::MustBuild;
using test_support::Parse;

const forest::TreeRoots kFirst{.one = NodeId{0}};

Result<TreeNetwork> CountAll(const Topology& topology, int64_t max_trees) {
  return forest::CountTrees(topology, {.count = topology.num_ranks()}, max_trees);
}

// Seconds a byte of a shard, by trying every set of nodes.
Rational SlowestCut(const Topology& topology) {
  Rational worst;
  const uint32_t ranks = (1u << topology.num_ranks()) - 1;
  for (uint32_t inside = 1; inside < (1u << topology.num_nodes()); ++inside) {
    const int count = __builtin_popcount(inside & ranks);
    if (count == 0 || (inside & ranks) == ranks) continue;
    int64_t out = 0;
    for (LinkId link : topology.Links())
      if (((inside >> topology.tail(link).value) & 1u) != 0 &&
          ((inside >> topology.head(link).value) & 1u) == 0)
        out += topology.bandwidth(link);
    worst = std::max(worst, Rational(count, out));
  }
  return worst;
}

// Seconds a byte of a shard that the busiest link takes for what the trees put on it.
Rational BusiestLink(const Topology& topology, const std::vector<forest::RoutedTree>& trees,
                     int64_t trees_of_root) {
  std::vector<int64_t> load(static_cast<size_t>(topology.num_links()), 0);
  for (const forest::RoutedTree& tree : trees)
    for (const forest::RoutedBranch& branch : tree.branches)
      for (LinkId link : branch.links) load[link.index()] += tree.copies;
  Rational worst;
  for (LinkId link : topology.Links())
    worst = std::max(
        worst, Rational(load[link.index()], trees_of_root) / Rational(topology.bandwidth(link)));
  return worst;
}

// Every root has all its trees, every tree spans all ranks, every branch is a way over switches.
void ExpectSpanning(const Topology& topology, const std::vector<forest::RoutedTree>& trees,
                    const std::vector<int64_t>& trees_of) {
  std::vector<int64_t> found(trees_of.size(), 0);
  for (const forest::RoutedTree& tree : trees) {
    EXPECT_EQ(tree.first, found[tree.root.index()]);
    found[tree.root.index()] += tree.copies;
    const std::vector<bool> in =
        WalkBranches(topology, tree, [&](LinkId link, const forest::RoutedBranch& branch) {
          const NodeId head = topology.head(link);
          EXPECT_TRUE(head == branch.head || !topology.is_rank(head));
        });
    EXPECT_EQ(std::count(in.begin(), in.end(), true), topology.num_ranks());
  }
  EXPECT_EQ(found, trees_of);
}

// Trees of an all-gather, which spread over all ranks and load no link more than the bound says.
void ExpectWithinLanes(const Topology& topology, const TreeNetwork& network,
                       const std::vector<forest::PackedTree>& packed) {
  const auto trees = forest::RouteTrees(topology, network, packed);
  ExpectSpanning(topology, trees, network.trees_of);
  const Bounds bounds =
      *ComputeBounds(topology, *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks()));
  EXPECT_LE(BusiestLink(topology, trees, network.trees_at_each),
            bounds.seconds_per_byte * Rational(topology.num_ranks()));
}

// All stages; trees that load no link beyond the cut.
void ExpectOptimal(const Topology& topology) {
  Result<TreeNetwork> network = CountAll(topology, 0);
  ASSERT_TRUE(network.has_value()) << network.error().message;
  ASSERT_TRUE(forest::FlowsSuffice(*network));
  const Status split = forest::SplitSwitches(*network);
  ASSERT_TRUE(split.has_value()) << split.error().message;
  for (const auto& [ends, lane] : network->lanes) {
    EXPECT_LT(ends.first, topology.num_ranks());
    EXPECT_LT(ends.second, topology.num_ranks());
  }
  const auto packed = forest::PackForest(*network, topology);
  ASSERT_TRUE(packed.has_value());
  const std::vector<forest::RoutedTree> trees = forest::RouteTrees(topology, *network, *packed);
  ExpectSpanning(topology, trees, network->trees_of);
  const Bounds bounds =
      *ComputeBounds(topology, *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks()));
  EXPECT_LE(BusiestLink(topology, trees, network->trees_at_each),
            bounds.seconds_per_byte * Rational(topology.num_ranks()));
}

// Trees of the exact scale, counted by hand: 1/x of unit links.
TEST(ForestCountTest, KnownNetworksHaveTheCutOfTheLiterature) {
  struct Row {
    const char* network;
    int64_t inverse_num, inverse_den;
  };
  for (const Row& row :
       {Row{"uniring(1,8)", 7, 1}, Row{"ring(8)", 7, 2}, Row{"mesh(4)", 3, 1},
        Row{"mesh(3,3)", 4, 1}, Row{"mesh(4,4)", 15, 2}, Row{"torus(3,3)", 2, 1},
        Row{"torus(4,4)", 15, 4}, Row{"hypercube(3)", 7, 3}, Row{"hypercube(4)", 15, 4},
        Row{"complete(8)", 1, 1}, Row{"switch(8)", 7, 1}}) {
    SCOPED_TRACE(row.network);
    const Result<Topology> topology = ParseTopology(row.network);
    if (!topology) continue;  // a family of another name
    const Result<TreeNetwork> network = CountAll(*topology, 0);
    ASSERT_TRUE(network.has_value());
    EXPECT_EQ(network->trees_at_each, row.inverse_den);
    EXPECT_EQ(network->lanes.begin()->second.trees(), row.inverse_num);
    EXPECT_TRUE(forest::FlowsSuffice(*network));
  }
}

// 24 shards of the other boxes come in over eight links of 50 GB/s, 31 into a rank over 500.
TEST(ForestCountTest, BoxesBehindSlowLinks) {
  const Result<TreeNetwork> network = CountAll(Boxes(4, 8), 0);
  ASSERT_TRUE(network.has_value());
  EXPECT_EQ(network->trees_at_each, 10);
  EXPECT_EQ((network->lanes.at({0, 32}).trees()), 31 * 9);
  EXPECT_EQ((network->lanes.at({0, 36}).trees()), 31);
}

TEST(ForestCountTest, AgreesWithEveryCutOfSmallNetworks) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = seed % 2 == 0 ? RandomBalanced(seed, 6, 3) : RandomOneWay(seed, 7);
    const Rational worst = SlowestCut(topology);
    const Result<TreeNetwork> network = CountAll(topology, 0);
    ASSERT_TRUE(network.has_value());
    // k trees in the time of one shard: a link of b carries k b worst of them.
    for (const auto& [ends, lane] : network->lanes) {
      Rational bandwidth;
      for (LinkId link : topology.Links())
        if (topology.tail(link).value == ends.first && topology.head(link).value == ends.second)
          bandwidth += Rational(topology.bandwidth(link));
      EXPECT_LE(Rational(lane.trees()), bandwidth * worst * Rational(network->trees_at_each));
    }
    EXPECT_TRUE(forest::FlowsSuffice(*network));
    // One tree more is too many.
    TreeNetwork more = *network;
    for (int64_t& trees : more.trees_of) ++trees;
    EXPECT_FALSE(forest::FlowsSuffice(more));
  }
}

TEST(ForestCountTest, FewerTreesLoseAKnownPart) {
  const Topology topology = Boxes(4, 8);
  const Rational worst =
      ComputeBounds(topology, *Collective::Make(CollectiveKind::kAllGather, 32))->seconds_per_byte *
      Rational(32);
  for (const int64_t most : {1, 2, 3, 5}) {
    SCOPED_TRACE(most);
    Result<TreeNetwork> network = CountAll(topology, most);
    ASSERT_TRUE(network.has_value());
    EXPECT_EQ(network->trees_at_each, most);
    ASSERT_TRUE(forest::SplitSwitches(*network).has_value());
    const auto packed = forest::PackForest(*network, topology);
    ASSERT_TRUE(packed.has_value());
    const auto trees = forest::RouteTrees(topology, *network, *packed);
    ExpectSpanning(topology, trees, network->trees_of);
    EXPECT_LE(BusiestLink(topology, trees, most), worst / (Rational(1) - network->loss));
    EXPECT_LE(network->loss, Rational(1, 4));
  }
}

TEST(ForestTreesTest, NoLinkCarriesMoreThanTheCutAllows) {
  for (const char* network : {"ring(5)", "mesh(2,3)", "hypercube(3)", "complete(5)", "switch(6)",
                              "switch2d(3,3)", "rfs(2,2,3)", "uniring(1,5)", "genkautz(2,7)"}) {
    SCOPED_TRACE(network);
    ExpectOptimal(Parse(network));
  }
  ExpectOptimal(Boxes(2, 4));
  ExpectOptimal(Boxes(3, 2));
  ExpectOptimal(TwoBoxesOnRails());
}

TEST(ForestTreesTest, RandomNetworksWithSwitches) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    ExpectOptimal(RandomBalanced(seed, 9, 5));
  }
}

TEST(ForestTreesTest, RandomOneWayNetworks) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    ExpectOptimal(RandomOneWay(seed, 9));
  }
}

// Trees of one box, shifted, are trees of all: no lane carries more than it has.
TEST(ForestTreesTest, ShiftedTreesOfEqualBoxes) {
  for (const auto& [boxes, ranks] : {std::pair(4, 2), std::pair(3, 4), std::pair(16, 8)}) {
    SCOPED_TRACE(boxes);
    const Topology topology = Boxes(boxes, ranks);
    Result<TreeNetwork> network = CountAll(topology, 0);
    ASSERT_TRUE(network.has_value());
    ASSERT_TRUE(forest::SplitSwitches(*network).has_value());
    const std::optional<int32_t> shift = forest::SmallestShift(*network);
    ASSERT_TRUE(shift.has_value());
    EXPECT_EQ(ranks % *shift, 0);
    const auto shifts = forest::RankShifts::By(network->num_ranks, *shift);
    const auto packed = forest::PackShifted(*network, shifts);
    if (boxes == 16) {
      ASSERT_TRUE(packed.has_value());
    }
    if (!packed) continue;
    ExpectWithinLanes(topology, *network, *packed);
  }
}

// Lanes of two boxes as full as they can be: trees grown level by level do not all fit.
TEST(ForestTreesTest, ExchangeFillsLanesToTheLast) {
  int more_than_levels = 0;
  for (const auto& [boxes, ranks] :
       {std::pair(2, 4), std::pair(2, 6), std::pair(2, 8), std::pair(4, 4), std::pair(3, 5)}) {
    SCOPED_TRACE(testing::Message() << boxes << " boxes of " << ranks);
    const Topology topology = Boxes(boxes, ranks);
    Result<TreeNetwork> network = CountAll(topology, 0);
    ASSERT_TRUE(network.has_value());
    ASSERT_TRUE(forest::SplitSwitches(*network).has_value());
    const std::optional<int32_t> shift = forest::SmallestShift(*network);
    ASSERT_TRUE(shift.has_value());
    const auto shifts = forest::RankShifts::By(network->num_ranks, *shift);
    const auto packed = forest::PackByExchange(*network, shifts);
    if (!forest::PackShifted(*network, shifts) && packed) ++more_than_levels;
    ASSERT_TRUE(packed.has_value());
    ExpectWithinLanes(topology, *network, *packed);
  }
  EXPECT_GT(more_than_levels, 0);
}

// Trees of rank 0, translated: lanes of these networks are as full as they can be.
TEST(ForestTreesTest, TranslatedTreesOfOneRank) {
  for (const char* text : {"hypercube(3)", "hypercube(5)", "hypercube(7)", "torus(3,5)",
                           "torus(4,4,4)", "twisted_torus(8,4)", "cayley(7,3,2,1,0,0,1)"}) {
    SCOPED_TRACE(text);
    const Topology topology = Parse(text);
    const Result<TreeNetwork> network = CountAll(topology, 0);
    ASSERT_TRUE(network.has_value());
    const auto shifts = forest::RankShifts::Translating(topology, *network);
    ASSERT_TRUE(shifts.has_value());
    EXPECT_EQ(shifts->first(), 1);
    for (int32_t rank = 0; rank < shifts->num_ranks(); ++rank)
      EXPECT_EQ(shifts->Image(shifts->MemberTo(rank), 0), rank);
    auto packed = forest::PackShifted(*network, *shifts);
    if (!packed) packed = forest::PackByExchange(*network, *shifts);
    ASSERT_TRUE(packed.has_value());
    ExpectWithinLanes(topology, *network, *packed);
  }
}

TEST(ForestTreesTest, NoTranslationsOfWhatDiffers) {
  const auto translate = [](const Topology& topology) {
    return forest::RankShifts::Translating(topology, *CountAll(topology, 0)).has_value();
  };
  EXPECT_FALSE(translate(Parse("mesh(3,3)")));
  EXPECT_FALSE(translate(Parse("switch(4)")));
  const Topology cube = Parse("hypercube(3)");
  TreeNetwork network = *CountAll(cube, 0);
  ASSERT_TRUE(forest::RankShifts::Translating(cube, network).has_value());
  // Trees of one root more, or a lane that carries less.
  ++network.trees_of[5];
  EXPECT_FALSE(forest::RankShifts::Translating(cube, network).has_value());
  --network.trees_of[5];
  --network.lanes.at({3, 7}).paths.front().trees;
  EXPECT_FALSE(forest::RankShifts::Translating(cube, network).has_value());
}

// What the forecast says of a network is what is found of its lanes.
// The NICs of each box take in every tree of the others once and no more.
TEST(ForestTreesTest, BoxesAreEnteredOnce) {
  for (const char* boxes : {"mi250(6)", "mi250(16)"}) {
    SCOPED_TRACE(boxes);
    ExpectOptimal(Parse(boxes));
  }
}

// One rank is tested for all of a ring: two trees a root over links for seven, as counted by hand.
TEST(ForestCountTest, RanksThatAreAlikeAreTestedOnce) {
  TreeNetwork network = *CountAll(Parse("ring(8)"), 0);
  ASSERT_EQ(forest::SmallestShift(network), 1);
  EXPECT_TRUE(forest::FlowsSuffice(network));
  for (int64_t& trees : network.trees_of) ++trees;
  EXPECT_FALSE(forest::FlowsSuffice(network));
  // Not all alike: every rank counts.
  network = *CountAll(Parse("mesh(3,3)"), 0);
  EXPECT_FALSE(forest::SmallestShift(network).has_value());
  EXPECT_TRUE(forest::FlowsSuffice(network));
  ++network.trees_of[4];
  EXPECT_FALSE(forest::FlowsSuffice(network));
  // A switch has no place in a shift of ranks.
  EXPECT_FALSE(forest::SmallestShift(*CountAll(Parse("switch(8)"), 0)).has_value());
}

TEST(ForestTreesTest, ShiftsAreForecastFromTheNetwork) {
  for (const char* text : {"dgx_h100(4)", "nvl72(2)", "fat_tree(4)", "spine_leaf(4,4,4)",
                           "rail(4,4)", "torus(3,4)", "ring(6)"}) {
    SCOPED_TRACE(text);
    EXPECT_TRUE(forest::SeemsShifted(Parse(text)));
  }
  for (const char* text : {"mesh(4)", "mesh(3,3)", "random_regular(3,8)"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(forest::SeemsShifted(Parse(text)));
  }
  // One cable that trained too slow is enough.
  Topology::Builder builder(4, 1);
  for (int32_t rank = 0; rank < 4; ++rank)
    builder.AddDuplex(NodeId{rank}, NodeId{4}, rank == 2 ? forest_test::kSlow : forest_test::kFast);
  EXPECT_FALSE(forest::SeemsShifted(MustBuild(std::move(builder))));
}

TEST(ForestTreesTest, NoShiftWithoutEqualBoxes) {
  const Result<TreeNetwork> network = CountAll(Parse("mesh(4)"), 0);
  ASSERT_TRUE(network.has_value());
  EXPECT_FALSE(forest::SmallestShift(*network).has_value());
}

// Three units lead from 0 to 1, so three trees of one unit are the optimum, and one of three.
TEST(FewestTreesTest, ByHand) {
  Topology::Builder builder(2);
  builder.AddLink(NodeId{0}, NodeId{1}, {.bandwidth = 3'000'000, .alpha_ps = 1000});
  builder.AddLink(NodeId{1}, NodeId{0}, {.bandwidth = 2'000'000, .alpha_ps = 1000});
  const Topology topology = MustBuild(std::move(builder));
  const TreeNetwork optimum = *forest::CountTrees(topology, kFirst, 0);
  EXPECT_EQ(optimum.trees_at_each, 3);
  const std::optional<TreeNetwork> fewest = forest::FewestTrees(topology, kFirst, optimum);
  ASSERT_TRUE(fewest.has_value());
  EXPECT_EQ(fewest->trees_at_each, 1);
  EXPECT_FALSE(forest::FewestTrees(topology, kFirst, *fewest).has_value());
}

// 16 NICs of 16 GB/s lead into the other box: as many trees of 16 GB/s as of 2 do.
TEST(FewestTreesTest, OneTreeANicIsEnough) {
  const Topology topology = Parse("mi250(2)");
  const TreeNetwork optimum = *forest::CountTrees(topology, kFirst, 0);
  EXPECT_EQ(optimum.trees_at_each, 128);
  EXPECT_EQ(forest::FewestTrees(topology, kFirst, optimum)->trees_at_each, 16);
}

TEST(FewestTreesProperty, KeepsTheRate) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = RandomBalanced(seed, 6, 3);
    const TreeNetwork optimum = *forest::CountTrees(topology, kFirst, 0);
    const std::optional<TreeNetwork> fewest = forest::FewestTrees(topology, kFirst, optimum);
    if (!fewest) continue;
    EXPECT_LT(fewest->trees_at_each, optimum.trees_at_each);
    EXPECT_TRUE(forest::FlowsSuffice(*fewest));
    EXPECT_EQ(fewest->trees_a_bandwidth * Rational(optimum.trees_at_each),
              optimum.trees_a_bandwidth * Rational(fewest->trees_at_each));
  }
}

}  // namespace
}  // namespace tutti

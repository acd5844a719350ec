#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "forest/packing.h"
#include "forest/root_rates.h"
#include "forest/routed_trees.h"
#include "forest/shifted_packing.h"
#include "forest/splitting.h"
#include "forest/tree_network.h"
#include "support/build.h"
#include "tutti/base/random.h"
#include "tutti/lp/linear_program.h"
#include "tutti/sched/cost.h"
#include "tutti/sched/transform.h"
#include "tutti/topo/properties.h"
#include "unit/synth/classic_support.h"

namespace tutti {
namespace {

using classic_test::Algorithm;
using forest::TreeNetwork;
using test_support::MustBuild;
using test_support::Parse;

constexpr LinkSpec kFast{.bandwidth = 450'000'000'000, .alpha_ps = 500'000};
constexpr LinkSpec kSlow{.bandwidth = 50'000'000'000, .alpha_ps = 500'000};

// Boxes of ranks around a fast switch each, every rank with a slow link to one fabric switch.
Topology Boxes(int32_t boxes, int32_t ranks) {
  Topology::Builder builder(boxes * ranks, boxes + 1);
  for (int32_t box = 0; box < boxes; ++box)
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const NodeId node{box * ranks + rank};
      builder.AddDuplex(node, NodeId{boxes * ranks + box}, kFast);
      builder.AddDuplex(node, NodeId{boxes * ranks + boxes}, kSlow);
    }
  return MustBuild(std::move(builder));
}

// Two boxes of four fully joined ranks, each rank on a rail of its own.
Topology TwoBoxesOnRails() {
  Topology::Builder builder(8, 4);
  for (int32_t box = 0; box < 2; ++box)
    for (int32_t rank = 0; rank < 4; ++rank) {
      for (int32_t other = 0; other < rank; ++other)
        builder.AddDuplex(NodeId{box * 4 + rank}, NodeId{box * 4 + other},
                          {.bandwidth = 100'000'000'000, .alpha_ps = 500'000});
      builder.AddDuplex(NodeId{box * 4 + rank}, NodeId{8 + rank},
                        {.bandwidth = 25'000'000'000, .alpha_ps = 500'000});
    }
  return MustBuild(std::move(builder));
}

// Duplex cables at random, so that every node takes in what it gives out; strongly connected by a
// path through all nodes.
Topology RandomBalanced(uint64_t seed, int32_t most_ranks, int32_t max_switches) {
  Random random(seed);
  const auto ranks = static_cast<int32_t>(2 + random.Below(static_cast<uint64_t>(most_ranks - 1)));
  const auto switches = static_cast<int32_t>(random.Below(static_cast<uint64_t>(max_switches + 1)));
  const int32_t nodes = ranks + switches;
  Topology::Builder builder(ranks, switches);
  const auto spec = [&random] {
    return LinkSpec{.bandwidth = static_cast<int64_t>(1 + random.Below(6)) * 1'000'000,
                    .alpha_ps = 1000};
  };
  for (int32_t node = 1; node < nodes; ++node)
    builder.AddDuplex(NodeId{node},
                      NodeId{static_cast<int32_t>(random.Below(static_cast<uint64_t>(node)))},
                      spec());
  for (uint64_t extra = random.Below(static_cast<uint64_t>(nodes)); extra > 0; --extra) {
    const auto a = static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes)));
    const auto b = static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes)));
    if (a != b) builder.AddDuplex(NodeId{a}, NodeId{b}, spec());
  }
  return MustBuild(std::move(builder));
}

// A circle and one-way links at random: nodes take in more or less than they give out.
Topology RandomOneWay(uint64_t seed, int32_t most_ranks) {
  Random random(seed);
  const auto ranks = static_cast<int32_t>(2 + random.Below(static_cast<uint64_t>(most_ranks - 1)));
  Topology::Builder builder(ranks);
  const auto spec = [&random] {
    return LinkSpec{.bandwidth = static_cast<int64_t>(1 + random.Below(6)) * 1'000'000,
                    .alpha_ps = 1000};
  };
  for (int32_t rank = 0; rank < ranks; ++rank)
    builder.AddLink(NodeId{rank}, NodeId{(rank + 1) % ranks}, spec());
  for (uint64_t extra = random.Below(static_cast<uint64_t>(2 * ranks)); extra > 0; --extra) {
    const auto a = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
    const auto b = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
    if (a != b) builder.AddLink(NodeId{a}, NodeId{b}, spec());
  }
  return MustBuild(std::move(builder));
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
    std::vector<bool> in(static_cast<size_t>(topology.num_ranks()), false);
    in[tree.root.index()] = true;
    for (const forest::RoutedBranch& branch : tree.branches) {
      EXPECT_TRUE(in[branch.tail.index()]);
      EXPECT_FALSE(in[branch.head.index()]);
      in[branch.head.index()] = true;
      NodeId at = branch.tail;
      for (LinkId link : branch.links) {
        EXPECT_EQ(topology.tail(link), at);
        at = topology.head(link);
        EXPECT_TRUE(at == branch.head || !topology.is_rank(at));
      }
      EXPECT_EQ(at, branch.head);
    }
    EXPECT_EQ(std::count(in.begin(), in.end(), true), topology.num_ranks());
  }
  EXPECT_EQ(found, trees_of);
}

// All stages; trees that load no link beyond the cut.
void ExpectOptimal(const Topology& topology) {
  Result<TreeNetwork> network = forest::CountTrees(topology, std::nullopt, 0);
  ASSERT_TRUE(network.has_value()) << network.error().message;
  ASSERT_TRUE(forest::FlowsSuffice(*network));
  const Status split = forest::SplitSwitches(*network);
  ASSERT_TRUE(split.has_value()) << split.error().message;
  for (const auto& [ends, lane] : network->lanes) {
    EXPECT_LT(ends.first, topology.num_ranks());
    EXPECT_LT(ends.second, topology.num_ranks());
  }
  const auto packed = forest::PackForest(*network);
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
    const Result<TreeNetwork> network = forest::CountTrees(*topology, std::nullopt, 0);
    ASSERT_TRUE(network.has_value());
    EXPECT_EQ(network->trees_at_each, row.inverse_den);
    EXPECT_EQ(network->lanes.begin()->second.trees(), row.inverse_num);
    EXPECT_TRUE(forest::FlowsSuffice(*network));
  }
}

// 24 shards of the other boxes come in over eight links of 50 GB/s, 31 into a rank over 500.
TEST(ForestCountTest, BoxesBehindSlowLinks) {
  const Result<TreeNetwork> network = forest::CountTrees(Boxes(4, 8), std::nullopt, 0);
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
    const Result<TreeNetwork> network = forest::CountTrees(topology, std::nullopt, 0);
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
    Result<TreeNetwork> network = forest::CountTrees(topology, std::nullopt, most);
    ASSERT_TRUE(network.has_value());
    EXPECT_EQ(network->trees_at_each, most);
    ASSERT_TRUE(forest::SplitSwitches(*network).has_value());
    const auto packed = forest::PackForest(*network);
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
    Result<TreeNetwork> network = forest::CountTrees(topology, std::nullopt, 0);
    ASSERT_TRUE(network.has_value());
    ASSERT_TRUE(forest::SplitSwitches(*network).has_value());
    const std::optional<int32_t> shift = forest::SmallestShift(*network);
    ASSERT_TRUE(shift.has_value());
    EXPECT_EQ(ranks % *shift, 0);
    const auto packed = forest::PackShifted(*network, *shift);
    if (boxes == 16) {
      ASSERT_TRUE(packed.has_value());
    }
    if (!packed) continue;
    const auto trees = forest::RouteTrees(topology, *network, *packed);
    ExpectSpanning(topology, trees, network->trees_of);
    const Bounds bounds = *ComputeBounds(
        topology, *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks()));
    EXPECT_LE(BusiestLink(topology, trees, network->trees_at_each),
              bounds.seconds_per_byte * Rational(topology.num_ranks()));
  }
}

TEST(ForestTreesTest, NoShiftWithoutEqualBoxes) {
  const Result<TreeNetwork> network = forest::CountTrees(Parse("mesh(4)"), std::nullopt, 0);
  ASSERT_TRUE(network.has_value());
  EXPECT_FALSE(forest::SmallestShift(*network).has_value());
}

// --- Roots of unlike rates -----------------------------------------------------------------------

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
  return forest::FindRootRates(topology, transpose, link_map);
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

TEST(ForestRatesTest, KnowNoSwitches) {
  const auto rates = RatesOf(Parse("switch(4)"));
  ASSERT_TRUE(rates.has_value());
  EXPECT_FALSE(rates->has_value());
}

// --- Schedules -----------------------------------------------------------------------------------

Rational Efficiency(const Topology& topology, CollectiveKind kind, int64_t size_bytes) {
  const Collective collective = *Collective::Make(kind, topology.num_ranks());
  const Result<Schedule> made =
      RunSynthesizer(Algorithm("forest"), topology, collective, {.size_bytes = size_bytes});
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  if (!made) return 0;
  const VerifyReport report = Verify(topology, collective, *made);
  EXPECT_TRUE(report.verified()) << (report.violations.empty() ? ""
                                                               : report.violations.front().message);
  EXPECT_EQ(made->algorithm, "forest");
  return ComputeBounds(topology, collective)->Limit(size_bytes) /
         PredictedSeconds(topology, *made, size_bytes);
}

constexpr CollectiveKind kAll[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                   CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                                   CollectiveKind::kReduce};

TEST(ForestTest, StarsAreNearTheBound) {
  for (CollectiveKind kind : kAll) {
    SCOPED_TRACE(Name(kind));
    EXPECT_GE(Efficiency(Parse("switch(8)"), kind, int64_t{1} << 30), Rational(95, 100));
  }
}

TEST(ForestSlow, BoxesOnRailsAreNearTheBound) {
  for (CollectiveKind kind : kAll) {
    SCOPED_TRACE(Name(kind));
    EXPECT_GE(Efficiency(TwoBoxesOnRails(), kind, int64_t{1} << 30), Rational(95, 100));
  }
}

TEST(ForestSlow, BoxesAroundSwitches) {
  for (CollectiveKind kind : kAll) {
    SCOPED_TRACE(Name(kind));
    EXPECT_GE(Efficiency(Boxes(2, 8), kind, int64_t{1} << 30), Rational(80, 100));
  }
}

TEST(ForestSlow, EveryCollectiveOnNetworksAtRandom) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = seed % 2 == 0 ? RandomBalanced(seed, 7, 4) : RandomOneWay(seed, 6);
    for (CollectiveKind kind : kAll) EXPECT_GT(Efficiency(topology, kind, 1 << 20), Rational(0));
  }
}

TEST(ForestSlow, AllReduceOnAsymmetricDigraphsIsNearTheBound) {
  Rational sum, worst = 1;
  constexpr int kNetworks = 30;
  for (uint64_t seed = 0; seed < kNetworks; ++seed) {
    SCOPED_TRACE(seed);
    const Rational efficiency =
        Efficiency(RandomOneWay(seed, 12), CollectiveKind::kAllReduce, int64_t{1} << 30);
    sum += efficiency;
    worst = std::min(worst, efficiency);
  }
  EXPECT_GE(sum / Rational(kNetworks), Rational(95, 100)) << (sum / Rational(kNetworks)).ToDouble();
  EXPECT_GE(worst, Rational(78, 100)) << worst.ToDouble();
}

TEST(ForestTest, AsManyChunksAsAskedFor) {
  const Topology topology = Parse("switch2d(2,3)");
  for (const int32_t chunks : {1, 3, 7})
    for (CollectiveKind kind : kAll) {
      const Collective collective = *Collective::Make(kind, topology.num_ranks());
      const Result<Schedule> made =
          RunSynthesizer(Algorithm("forest"), topology, collective, {.chunks = chunks});
      ASSERT_TRUE(made.has_value()) << made.error().message;
      EXPECT_EQ(made->units_per_shard, chunks);
      EXPECT_TRUE(Verify(topology, collective, *made).verified());
    }
}

TEST(ForestTest, FewerTreesSayWhatTheyLose) {
  const Topology topology = Parse("dgx_h100(2)");
  const Collective collective = *Collective::Make(CollectiveKind::kAllGather, 16);
  SynthNotes notes;
  const Result<Schedule> made =
      RunSynthesizer(Algorithm("forest"), topology, collective, {.trees = 1, .notes = &notes});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_TRUE(Verify(topology, collective, *made).verified());
  ASSERT_TRUE(notes.gap.has_value());
  EXPECT_GT(*notes.gap, 0);
  EXPECT_LT(*notes.gap, 1);
  EXPECT_NE(notes.remark.find("trees a root: 1,"), std::string::npos) << notes.remark;

  SynthNotes optimal;
  ASSERT_TRUE(RunSynthesizer(Algorithm("forest"), topology, collective, {.notes = &optimal}));
  EXPECT_FALSE(optimal.gap.has_value());
}

TEST(ForestTest, OneShardGoesDownAndUpTheTreesOfOneRoot) {
  const Topology topology = Parse("switch(5)");
  Collective::Options options;
  options.all_reduce_shards = 1;
  const Collective collective = *Collective::Make(CollectiveKind::kAllReduce, 5, options);
  const Result<Schedule> made = RunSynthesizer(Algorithm("forest"), topology, collective, {});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_TRUE(Verify(topology, collective, *made).verified());
}

TEST(ForestTest, TheSameBytesTwice) {
  const Topology topology = Boxes(2, 3);
  const Collective collective = *Collective::Make(CollectiveKind::kAllReduce, 6);
  const Result<Schedule> first = RunSynthesizer(Algorithm("forest"), topology, collective, {});
  const Result<Schedule> second = RunSynthesizer(Algorithm("forest"), topology, collective, {});
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(*first, *second);
}

TEST(ForestTest, HostLimitsAreRefused) {
  Topology::Builder builder(3);
  for (int32_t rank = 0; rank < 3; ++rank)
    builder.AddDuplex(NodeId{rank}, NodeId{(rank + 1) % 3}, {});
  builder.SetHostBandwidth(NodeId{0}, 1'000'000'000);
  const Topology topology = MustBuild(std::move(builder));
  const Result<Schedule> made = RunSynthesizer(
      Algorithm("forest"), topology, *Collective::Make(CollectiveKind::kAllGather, 3), {});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::kInfeasible);
  EXPECT_NE(made.error().message.find("host limits"), std::string::npos);
}

// Both ways at once through one switch: what enters it twice leaves it twice.
TEST(ForestTest, ASwitchPassesTheSameBytesOnceForEachReceiver) {
  const Topology star = Parse("switch(3)");
  const auto into = [&](int32_t rank) { return star.OutLinks(NodeId{rank})[0]; };
  const auto to = [&](int32_t rank) {
    for (LinkId link : star.OutLinks(NodeId{3}))
      if (star.head(link) == NodeId{rank}) return link;
    return LinkId{-1};
  };
  const Collective collective = *Collective::Make(CollectiveKind::kBroadcast, 3);
  Schedule schedule{.collective = collective};
  schedule.topology_fingerprint = star.Fingerprint();
  schedule.num_steps = 4;
  const auto add = [&](LinkId link, int32_t step) {
    schedule.transfers.push_back({ShardId{0}, link, 0, 1, step, TransferOp::kCopy});
  };
  add(into(0), 0);
  add(to(1), 1);
  add(into(1), 2);
  add(to(2), 3);
  EXPECT_TRUE(Verify(star, collective, schedule).verified());
  // A rank may not get twice what it holds.
  schedule.num_steps = 5;
  add(to(1), 4);
  EXPECT_EQ(Verify(star, collective, schedule).violations.at(0).kind,
            ViolationKind::kRedundantDelivery);
}

// Three units lead from 0 to 1, so three trees of one unit are the optimum, and one of three.
TEST(FewestTreesTest, ByHand) {
  Topology::Builder builder(2);
  builder.AddLink(NodeId{0}, NodeId{1}, {.bandwidth = 3'000'000, .alpha_ps = 1000});
  builder.AddLink(NodeId{1}, NodeId{0}, {.bandwidth = 2'000'000, .alpha_ps = 1000});
  const Topology topology = MustBuild(std::move(builder));
  const TreeNetwork optimum = *forest::CountTrees(topology, NodeId{0}, 0);
  EXPECT_EQ(optimum.trees_at_each, 3);
  const std::optional<TreeNetwork> fewest = forest::FewestTrees(topology, NodeId{0}, optimum);
  ASSERT_TRUE(fewest.has_value());
  EXPECT_EQ(fewest->trees_at_each, 1);
  EXPECT_FALSE(forest::FewestTrees(topology, NodeId{0}, *fewest).has_value());
}

// 16 NICs of 16 GB/s lead into the other box: as many trees of 16 GB/s as of 2 do.
TEST(FewestTreesTest, OneTreeANicIsEnough) {
  const Topology topology = Parse("mi250(2)");
  const TreeNetwork optimum = *forest::CountTrees(topology, NodeId{0}, 0);
  EXPECT_EQ(optimum.trees_at_each, 128);
  EXPECT_EQ(forest::FewestTrees(topology, NodeId{0}, optimum)->trees_at_each, 16);
}

TEST(FewestTreesProperty, KeepsTheRate) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = RandomBalanced(seed, 6, 3);
    const TreeNetwork optimum = *forest::CountTrees(topology, NodeId{0}, 0);
    const std::optional<TreeNetwork> fewest = forest::FewestTrees(topology, NodeId{0}, optimum);
    if (!fewest) continue;
    EXPECT_LT(fewest->trees_at_each, optimum.trees_at_each);
    EXPECT_TRUE(forest::FlowsSuffice(*fewest));
    EXPECT_EQ(fewest->trees_a_bandwidth * Rational(optimum.trees_at_each),
              optimum.trees_a_bandwidth * Rational(fewest->trees_at_each));
  }
}

}  // namespace
}  // namespace tutti

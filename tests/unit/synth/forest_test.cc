// Schedules of forests.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "unit/synth/forest_testing.h"

namespace tutti {
namespace {

using classic_test::Algorithm;
using forest_test::Boxes;
using forest_test::Efficiency;
using forest_test::kAll;
using forest_test::RandomBalanced;
using forest_test::RandomOneWay;
using forest_test::TwoBoxesOnRails;
using test_support::MustBuild;
using test_support::Parse;

constexpr int32_t kAllTrees = 1 << 20;

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

// No shift but translations: half of the ranks would be one box.
TEST(ForestTest, TreesOfOneRankAreTranslated) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
    SCOPED_TRACE(Name(kind));
    EXPECT_GE(Efficiency(Parse("hypercube(7)"), kind, int64_t{1} << 30), Rational(93, 100));
  }
}

TEST(ForestSlow, AThousandRanksOfACube) {
  EXPECT_GE(Efficiency(Parse("hypercube(10)"), CollectiveKind::kAllGather, int64_t{1} << 30),
            Rational(85, 100));
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
  EXPECT_GE(sum / Rational(kNetworks), Rational(98, 100)) << (sum / Rational(kNetworks)).ToDouble();
  EXPECT_GE(worst, Rational(88, 100)) << worst.ToDouble();
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
  ASSERT_TRUE(RunSynthesizer(Algorithm("forest"), topology, collective,
                             {.trees = kAllTrees, .notes = &optimal}));
  EXPECT_FALSE(optimal.gap.has_value());
}

// A chunk a tree is small where shards are: fewer trees take fewer alphas.
TEST(ForestTest, SmallShardsGoDownFewerTrees) {
  const Topology topology = Parse("dgx_h100(2)");
  for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce}) {
    const Collective collective = *Collective::Make(kind, 16);
    const auto seconds = [&](int32_t trees, SynthNotes* notes) {
      const Result<Schedule> made =
          RunSynthesizer(Algorithm("forest"), topology, collective,
                         {.size_bytes = 1 << 20, .trees = trees, .notes = notes});
      EXPECT_TRUE(made.has_value() && Verify(topology, collective, *made).verified());
      return PredictedSeconds(topology, *made, 1 << 20);
    };
    SynthNotes notes;
    EXPECT_LE(3 * seconds(0, &notes).ToDouble(), 2 * seconds(kAllTrees, nullptr).ToDouble());
    EXPECT_TRUE(notes.gap.has_value());
  }
}

// 144 ranks whose lanes are all full: trees of one rack stand for those of the other.
TEST(ForestSlow, TwoRacksOfSeventyTwo) {
  const Topology topology = Parse("nvl72(2)");
  const Collective collective = *Collective::Make(CollectiveKind::kAllGather, 144);
  const Result<Schedule> made =
      RunSynthesizer(Algorithm("forest"), topology, collective, {.trees = kAllTrees});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  std::vector<int64_t> units(static_cast<size_t>(topology.num_links()), 0);
  for (const Transfer& transfer : made->transfers) units[transfer.link.index()] += transfer.units();
  Rational busiest;
  for (LinkId link : topology.Links())
    busiest = std::max(busiest, Rational(units[link.index()], made->units_per_shard) /
                                    Rational(topology.bandwidth(link)));
  const Bounds bounds = *ComputeBounds(topology, collective);
  EXPECT_EQ(busiest, bounds.cut->shards_out / bounds.cut->capacity_out);
  EXPECT_TRUE(Verify(topology, collective, *made).verified());
}

// Equal boxes are packed without flows: their forecast grows with links, not with pairs of ranks.
TEST(ForestTest, ForecastsKnowEqualBoxes) {
  const auto work_s = [](const char* text, CollectiveKind kind) {
    const Topology topology = Parse(text);
    const Collective collective = *Collective::Make(kind, topology.num_ranks());
    return static_cast<double>(Algorithm("forest").forecast(topology, collective, {}).work_ns) /
           1e9;
  };
  for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce}) {
    EXPECT_LT(work_s("nvl72(2)", kind), 20);
    EXPECT_LT(work_s("dgx_h100(16)", kind), 20);
  }
  EXPECT_GT(work_s("random_regular(4,200)", CollectiveKind::kAllGather), 60);
  // Trees of one root take flows where there are no switches.
  EXPECT_GT(work_s("unwind(nvl72(2),degree=35)", CollectiveKind::kBroadcast), 20);
  EXPECT_LT(work_s("unwind(nvl72(2),degree=1)", CollectiveKind::kBroadcast), 5);
  // Equal, too, but 320 switches that join others are removed one by one: not within a minute.
  EXPECT_GT(work_s("fat_tree(16)", CollectiveKind::kAllGather), 60);
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

}  // namespace
}  // namespace tutti

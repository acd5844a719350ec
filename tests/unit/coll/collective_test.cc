#include "tutti/coll/collective.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/build.h"

namespace tutti {
namespace {

using test_support::MustMake;
using Kind = CollectiveKind;

// Tables spell options as calls: g++ 12 warns of aggregates within aggregates.
Collective::Options NoOptions() { return {}; }
Collective::Options Root(int32_t root) {
  Collective::Options options;
  options.root = root;
  return options;
}
Collective::Options Shards(int32_t shards) {
  Collective::Options options;
  options.all_reduce_shards = shards;
  return options;
}
Collective::Options Demand(std::vector<int64_t> demand, int64_t weight_of_size = 0) {
  Collective::Options options;
  options.demand = std::move(demand);
  options.weight_of_size = weight_of_size;
  return options;
}

// --- Pre- and postconditions of every collective over three ranks --------------------------------

constexpr int32_t kAll = -1;  // in place of a rank

struct Side {
  int32_t contributor, destination;  // of one shard
};

struct Meaning {
  const char* name;
  Kind kind;
  Collective::Options options;
  std::vector<Side> shards;
  Rational share;  // of M a shard
  bool has_root, reduces;
  Rational bus_factor;
  Kind reversed;
};

class CollectiveMeaning : public testing::TestWithParam<Meaning> {};

Collective::Ranks RanksOf(int32_t rank) {
  return rank == kAll ? Collective::Ranks{true, NodeId{0}} : Collective::Ranks{false, NodeId{rank}};
}

TEST_P(CollectiveMeaning, IsAsTheTableSays) {
  const Meaning& row = GetParam();
  const Collective collective = MustMake(row.kind, 3, row.options);
  EXPECT_EQ(collective.kind(), row.kind);
  EXPECT_EQ(collective.num_ranks(), 3);
  ASSERT_EQ(collective.num_shards(), static_cast<int32_t>(row.shards.size()));
  for (ShardId shard : collective.Shards()) {
    SCOPED_TRACE(shard.value);
    const Side& side = row.shards[shard.index()];
    EXPECT_EQ(collective.contributors(shard), RanksOf(side.contributor));
    EXPECT_EQ(collective.destinations(shard), RanksOf(side.destination));
    EXPECT_EQ(collective.ShardBytes(shard, 300), row.share * 300);
  }
  EXPECT_EQ(collective.has_root(), row.has_root);
  EXPECT_EQ(collective.reduces(), row.reduces);
  EXPECT_EQ(collective.BusFactor(), row.bus_factor);
}

TEST_P(CollectiveMeaning, ReversedSwapsTheSides) {
  const Meaning& row = GetParam();
  const Collective collective = MustMake(row.kind, 3, row.options);
  const Collective reversed = collective.Reversed();
  EXPECT_EQ(reversed.kind(), row.reversed);
  EXPECT_EQ(reversed.Reversed(), collective);
  ASSERT_EQ(reversed.num_shards(), collective.num_shards());
  const bool by_pair = row.kind == Kind::kAllToAll || row.kind == Kind::kAllToAllV;
  for (ShardId shard : collective.Shards()) {
    // The block of (s, d) becomes the block of (d, s); other shards keep their numbers.
    const ShardId turned{by_pair ? shard.value % 3 * 3 + shard.value / 3 : shard.value};
    EXPECT_EQ(reversed.contributors(turned), collective.destinations(shard));
    EXPECT_EQ(reversed.destinations(turned), collective.contributors(shard));
    EXPECT_EQ(reversed.ShardBytes(turned, 300), collective.ShardBytes(shard, 300));
  }
}

const std::vector<Side> kPairs = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1},
                                  {1, 2}, {2, 0}, {2, 1}, {2, 2}};

INSTANTIATE_TEST_SUITE_P(
    All, CollectiveMeaning,
    testing::Values(
        Meaning{"AllGather",
                Kind::kAllGather,
                NoOptions(),
                {{0, kAll}, {1, kAll}, {2, kAll}},
                {1, 3},
                false,
                false,
                {2, 3},
                Kind::kReduceScatter},
        Meaning{"ReduceScatter",
                Kind::kReduceScatter,
                NoOptions(),
                {{kAll, 0}, {kAll, 1}, {kAll, 2}},
                {1, 3},
                false,
                true,
                {2, 3},
                Kind::kAllGather},
        Meaning{"AllReduce",
                Kind::kAllReduce,
                NoOptions(),
                {{kAll, kAll}, {kAll, kAll}, {kAll, kAll}},
                {1, 3},
                false,
                true,
                {4, 3},
                Kind::kAllReduce},
        Meaning{"AllReduceOfOneShard",
                Kind::kAllReduce,
                Shards(1),
                {{kAll, kAll}},
                1,
                false,
                true,
                {4, 3},
                Kind::kAllReduce},
        Meaning{
            "Broadcast", Kind::kBroadcast, Root(2), {{2, kAll}}, 1, true, false, 1, Kind::kReduce},
        Meaning{"Reduce", Kind::kReduce, Root(1), {{kAll, 1}}, 1, true, true, 1, Kind::kBroadcast},
        Meaning{"Scatter",
                Kind::kScatter,
                Root(1),
                {{1, 0}, {1, 1}, {1, 2}},
                {1, 3},
                true,
                false,
                {2, 3},
                Kind::kGather},
        Meaning{"Gather",
                Kind::kGather,
                Root(1),
                {{0, 1}, {1, 1}, {2, 1}},
                {1, 3},
                true,
                false,
                {2, 3},
                Kind::kScatter},
        Meaning{"AllToAll",
                Kind::kAllToAll,
                NoOptions(),
                kPairs,
                {1, 3},
                false,
                false,
                {2, 3},
                Kind::kAllToAll},
        Meaning{"AllToAllV",
                Kind::kAllToAllV,
                Demand(std::vector<int64_t>(9, 5)),
                kPairs,
                {1, 3},
                false,
                false,
                {2, 3},
                Kind::kAllToAllV}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(CollectiveTest, RanksContainThemselvesOrAll) {
  const Collective collective = MustMake(Kind::kAllGather, 3);
  EXPECT_TRUE(collective.contributors(ShardId{1}).Contains(NodeId{1}));
  EXPECT_FALSE(collective.contributors(ShardId{1}).Contains(NodeId{2}));
  EXPECT_TRUE(collective.destinations(ShardId{1}).Contains(NodeId{2}));
}

TEST(CollectiveTest, DemandsWeighTheBlocksAgainstTheBusiestSender) {
  const std::vector<int64_t> demand = {1, 2, 3, 0, 0, 4, 0, 8, 0};
  const Collective collective = MustMake(Kind::kAllToAllV, 3, Demand(demand));
  EXPECT_EQ(collective.demand(), demand);
  EXPECT_EQ(collective.weight_of_size(), 8);
  EXPECT_EQ(collective.ShardBytes(ShardId{1}, 80), Rational(20));
  EXPECT_EQ(collective.ShardBytes(ShardId{3}, 80), Rational(0));
  EXPECT_EQ(collective.ShardBytes(ShardId{7}, 80), Rational(80));
  // Reversed, M still stands for what the busiest sender of the original sends.
  const Collective reversed = collective.Reversed();
  EXPECT_EQ(reversed.demand(), (std::vector<int64_t>{1, 0, 0, 2, 0, 8, 3, 4, 0}));
  EXPECT_EQ(reversed.ShardBytes(ShardId{5}, 80), Rational(80));
}

TEST(CollectiveTest, TheWeightOfSizeCanBeGiven) {
  const Collective collective = MustMake(Kind::kAllToAllV, 2, Demand({0, 3, 1, 0}, 10));
  EXPECT_EQ(collective.weight_of_size(), 10);
  EXPECT_EQ(collective.ShardBytes(ShardId{1}, 100), Rational(30));
}

TEST(CollectiveTest, OneRankIsEnoughForMost) {
  for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce, Kind::kBroadcast,
                    Kind::kReduce, Kind::kGather, Kind::kScatter, Kind::kAllToAll}) {
    EXPECT_EQ(MustMake(kind, 1).num_shards(), 1) << Name(kind);
  }
}

TEST(CollectiveTest, ARootIsOnlyKeptWhereItMeansSomething) {
  EXPECT_EQ(MustMake(Kind::kAllGather, 3, Root(2)), MustMake(Kind::kAllGather, 3));
  EXPECT_FALSE(MustMake(Kind::kGather, 3, Root(2)) == MustMake(Kind::kGather, 3));
}

// --- Names ---------------------------------------------------------------------------------------

TEST(CollectiveTest, NamesReadBack) {
  for (Kind kind :
       {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce, Kind::kBroadcast, Kind::kReduce,
        Kind::kGather, Kind::kScatter, Kind::kAllToAll, Kind::kAllToAllV}) {
    const Result<Kind> parsed = ParseCollectiveKind(Name(kind));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(*parsed, kind);
  }
}

TEST(CollectiveTest, NamesOfOtherLibrariesAreRead) {
  for (const char* name : {"all-reduce", "allreduce", "all_reduce", "AllReduce", "ALLREDUCE"})
    EXPECT_EQ(ParseCollectiveKind(name).value(), Kind::kAllReduce) << name;
  for (const char* name : {"reducescatter", "reduce_scatter", "ReduceScatter"})
    EXPECT_EQ(ParseCollectiveKind(name).value(), Kind::kReduceScatter) << name;
  for (const char* name : {"alltoall", "AllToAll", "all_to_all"})
    EXPECT_EQ(ParseCollectiveKind(name).value(), Kind::kAllToAll) << name;
  for (const char* name : {"alltoallv", "all-to-all-v", "AllToAllV"})
    EXPECT_EQ(ParseCollectiveKind(name).value(), Kind::kAllToAllV) << name;
}

TEST(CollectiveTest, AnUnknownNameListsTheAccepted) {
  for (const char* name : {"", "-", "allgathers", "All Gather", "all-gather "}) {
    const Result<Kind> parsed = ParseCollectiveKind(name);
    ASSERT_FALSE(parsed.has_value());
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(parsed.error().message,
              "unknown collective '" + std::string(name) +
                  "'; accepted are all-gather, reduce-scatter, all-reduce, broadcast, reduce, "
                  "gather, scatter, all-to-all, all-to-allv");
  }
}

// --- Wrong input: one fault a row ----------------------------------------------------------------

struct BadCase {
  const char* name;
  Kind kind;
  int32_t num_ranks;
  Collective::Options options;
  const char* message;
};

class CollectiveRejects : public testing::TestWithParam<BadCase> {};

TEST_P(CollectiveRejects, NamesTheFault) {
  const BadCase& bad = GetParam();
  const Result<Collective> made = Collective::Make(bad.kind, bad.num_ranks, bad.options);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(made.error().message, bad.message);
}

constexpr int64_t kHuge = int64_t{1} << 61;

INSTANTIATE_TEST_SUITE_P(
    All, CollectiveRejects,
    testing::Values(BadCase{"NoRanks", Kind::kAllGather, 0, NoOptions(),
                            "a collective needs at least 1 rank, got 0"},
                    BadCase{"NegativeRanks", Kind::kAllGather, -4, NoOptions(),
                            "a collective needs at least 1 rank, got -4"},
                    BadCase{"RootAbove", Kind::kBroadcast, 3, Root(3),
                            "root 3 is not a rank; there are 3 ranks"},
                    BadCase{"RootBelow", Kind::kBroadcast, 3, Root(-1),
                            "root -1 is not a rank; there are 3 ranks"},
                    BadCase{"Shards", Kind::kAllReduce, 3, Shards(2),
                            "all-reduce over 3 ranks has 1 or 3 shards, not 2"},
                    BadCase{"StrayDemand", Kind::kAllToAll, 2, Demand({0, 1, 1, 0}),
                            "all-to-all takes no demand matrix"},
                    BadCase{"NoDemand", Kind::kAllToAllV, 2, NoOptions(),
                            "the demand matrix has 0 entries, 2 ranks need 2 x 2"},
                    BadCase{"ShortDemand", Kind::kAllToAllV, 2, Demand({0, 1, 1}),
                            "the demand matrix has 3 entries, 2 ranks need 2 x 2"},
                    BadCase{"NegativeDemand", Kind::kAllToAllV, 2, Demand({0, 1, -1, 0}),
                            "the demand from rank 1 to rank 0 is negative: -1"},
                    BadCase{"EmptyDemand", Kind::kAllToAllV, 2, Demand({7, 0, 0, 7}),
                            "the demand matrix asks for no traffic between ranks"},
                    BadCase{"HugeDemand", Kind::kAllToAllV, 2, Demand({kHuge, kHuge, 0, 0}),
                            "the demand of rank 0 adds up to 2^62 or more"},
                    BadCase{"NegativeWeight", Kind::kAllToAllV, 2, Demand({0, 1, 0, 0}, -1),
                            "the weight of M must be within 0 .. 2^62 - 1, got -1"},
                    BadCase{"TooManyPairs", Kind::kAllToAll, 46341, NoOptions(),
                            "all-to-all supports at most 46340 ranks, got 46341"}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace tutti

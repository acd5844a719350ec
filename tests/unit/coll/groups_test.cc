#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "support/build.h"
#include "tutti/coll/collective.h"
#include "tutti/coll/slots.h"

namespace tutti::coll_groups_test {
namespace {

using Kind = CollectiveKind;
using test_support::MustMake;

std::vector<NodeId> Ranks(std::initializer_list<int32_t> values) {
  std::vector<NodeId> ranks;
  for (const int32_t value : values) ranks.push_back(NodeId{value});
  return ranks;
}

constexpr Kind kKinds[] = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                           Kind::kBroadcast, Kind::kReduce,        Kind::kGather,
                           Kind::kScatter,   Kind::kAllToAll};

TEST(CollectiveGroupsTest, ShardsOfTwoGroupsStandOneGroupAfterTheOther) {
  const Collective gather =
      MustMake(Kind::kAllGather, 8, {.groups = {Ranks({5, 1}), Ranks({2, 0, 7})}});
  EXPECT_EQ(gather.num_shards(), 5);
  EXPECT_EQ(gather.contributors(ShardId{0}).one, NodeId{5});
  EXPECT_EQ(gather.contributors(ShardId{1}).one, NodeId{1});
  EXPECT_EQ(gather.contributors(ShardId{4}).one, NodeId{7});
  EXPECT_TRUE(gather.destinations(ShardId{4}).Contains(NodeId{0}));
  EXPECT_FALSE(gather.destinations(ShardId{4}).Contains(NodeId{1}));
  EXPECT_EQ(gather.destinations(ShardId{4}).Count(8), 3);
  // M is that of each group: halves in one, thirds in the other.
  EXPECT_EQ(gather.ShardBytes(ShardId{0}, 12), Rational(6));
  EXPECT_EQ(gather.ShardBytes(ShardId{2}, 12), Rational(4));
  EXPECT_FALSE(gather.equal_weights());
  EXPECT_EQ(gather.num_pairs(), 2 + 6);
  EXPECT_EQ(gather.largest_group(), 3);
}

TEST(CollectiveGroupsTest, RootIsAPositionInEachGroup) {
  const Collective broadcast =
      MustMake(Kind::kBroadcast, 6, {.root = 1, .groups = {Ranks({4, 2}), Ranks({0, 5})}});
  EXPECT_EQ(broadcast.num_shards(), 2);
  EXPECT_EQ(broadcast.contributors(ShardId{0}).one, NodeId{2});
  EXPECT_EQ(broadcast.contributors(ShardId{1}).one, NodeId{5});
  EXPECT_EQ(broadcast.root(), NodeId{2});
}

TEST(CollectiveGroupsTest, OneGroupOfAllRanksInOrderIsTheWholeCollective) {
  for (const Kind kind : kKinds) {
    const Collective whole = MustMake(kind, 4),
                     group = MustMake(kind, 4, {.groups = {Ranks({0, 1, 2, 3})}});
    ASSERT_EQ(group.num_shards(), whole.num_shards()) << Name(kind);
    EXPECT_EQ(group.weight_of_size(), whole.weight_of_size());
    EXPECT_EQ(group.BusFactor(), whole.BusFactor());
    EXPECT_EQ(group.OfGroup(0), whole);
    for (const ShardId shard : whole.Shards())
      for (int32_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(group.contributors(shard).Contains(NodeId{rank}),
                  whole.contributors(shard).Contains(NodeId{rank}));
        EXPECT_EQ(group.destinations(shard).Contains(NodeId{rank}),
                  whole.destinations(shard).Contains(NodeId{rank}));
        EXPECT_EQ(InputSlot(group, NodeId{rank}, shard), InputSlot(whole, NodeId{rank}, shard));
        EXPECT_EQ(OutputSlot(group, NodeId{rank}, shard), OutputSlot(whole, NodeId{rank}, shard));
      }
  }
}

// Random groups, ranks in several of them too.
std::vector<std::vector<NodeId>> RandomGroups(std::mt19937& rng, int32_t num_ranks) {
  std::vector<std::vector<NodeId>> groups(1 + rng() % 3);
  for (std::vector<NodeId>& group : groups) {
    std::vector<NodeId> left;
    for (int32_t rank = 0; rank < num_ranks; ++rank) left.push_back(NodeId{rank});
    const size_t size = 2 + rng() % static_cast<uint32_t>(num_ranks - 1);
    while (group.size() < size) {
      const auto at = static_cast<std::ptrdiff_t>(rng() % left.size());
      group.push_back(left[static_cast<size_t>(at)]);
      left.erase(left.begin() + at);
    }
  }
  return groups;
}

TEST(CollectiveGroupsProperty, SlotsAndShardsFollowFromEachOther) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const auto num_ranks = static_cast<int32_t>(2 + rng() % 8);
    const auto groups = RandomGroups(rng, num_ranks);
    for (const Kind kind : kKinds) {
      const Collective collective = MustMake(kind, num_ranks, {.groups = groups});
      EXPECT_EQ(collective.Reversed().Reversed(), collective);
      Rational bytes_in_group;
      for (const ShardId shard : collective.Shards()) {
        EXPECT_EQ(collective.Reversed().ReversedShard(collective.ReversedShard(shard)), shard);
        EXPECT_EQ(collective.contributors(shard),
                  collective.Reversed().destinations(collective.ReversedShard(shard)));
        bytes_in_group += collective.ShardBytes(shard, 1);
      }
      // One M a group, as many as ranks of all-to-all.
      Rational wanted;
      for (const auto& group : groups)
        wanted +=
            collective.is_all_to_all() ? Rational(static_cast<int64_t>(group.size())) : Rational(1);
      EXPECT_EQ(bytes_in_group, wanted);
      for (int32_t r = 0; r < num_ranks; ++r) {
        const NodeId rank{r};
        for (int32_t slot = 0; slot < NumInputSlots(collective, rank); ++slot) {
          const ShardId shard = InputShard(collective, rank, slot);
          if (!collective.contributors(shard).Contains(rank)) continue;
          EXPECT_EQ(InputSlot(collective, rank, shard), slot);
        }
        for (int32_t slot = 0; slot < NumOutputSlots(collective, rank); ++slot) {
          const ShardId shard = OutputShard(collective, rank, slot);
          if (!collective.destinations(shard).Contains(rank)) continue;
          EXPECT_EQ(OutputSlot(collective, rank, shard), slot);
        }
      }
    }
  }
}

struct BadGroups {
  const char* name;
  Kind kind;
  Collective::Options options;
  const char* message;
};

TEST(CollectiveGroupsTest, NamesTheFault) {
  const BadGroups kBad[] = {
      {"one rank", Kind::kAllGather, {.groups = {Ranks({3})}}, "group 0: it has 1 rank"},
      {"twice",
       Kind::kAllGather,
       {.groups = {Ranks({0, 1}), Ranks({3, 2, 3})}},
       "group 1: rank 3 is in it twice"},
      {"outside", Kind::kAllGather, {.groups = {Ranks({0, 8})}}, "8 is not a rank"},
      {"negative", Kind::kAllGather, {.groups = {Ranks({-1, 2})}}, "-1 is not a rank"},
      {"root", Kind::kBroadcast, {.root = 2, .groups = {Ranks({4, 5})}}, "no position in group 0"},
      {"demand",
       Kind::kAllToAllV,
       {.demand = {0, 1, 1, 0}, .groups = {Ranks({0, 1})}},
       "takes no groups"},
      {"shards",
       Kind::kAllReduce,
       {.all_reduce_shards = 2, .groups = {Ranks({0, 1})}},
       "1 shard a group"},
      {"idle", Kind::kAllGather, {.others = Others::kIdle}, "idle"},
  };
  for (const BadGroups& bad : kBad) {
    const Result<Collective> made = Collective::Make(bad.kind, 8, bad.options);
    ASSERT_FALSE(made.has_value()) << bad.name;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(made.error().message.find(bad.message), std::string::npos) << made.error().message;
  }
}

}  // namespace
}  // namespace tutti::coll_groups_test

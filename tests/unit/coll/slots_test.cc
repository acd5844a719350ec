// Buffers of ranks: the table of the header by hand, and what holds for every collective.
#include "tutti/coll/slots.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace tutti {
namespace {

using Kind = CollectiveKind;

const std::vector<Kind> kKinds{Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                               Kind::kBroadcast, Kind::kReduce,        Kind::kGather,
                               Kind::kScatter,   Kind::kAllToAll,      Kind::kAllToAllV};

Collective Of(Kind kind, int32_t ranks, int32_t root = 0, int32_t all_reduce_shards = 0) {
  Collective::Options options{.root = root, .all_reduce_shards = all_reduce_shards};
  if (kind == Kind::kAllToAllV)
    options.demand.assign(static_cast<size_t>(ranks) * static_cast<size_t>(ranks), 3);
  const Result<Collective> made = Collective::Make(kind, ranks, std::move(options));
  if (!made) throw std::invalid_argument(made.error().message);
  return *made;
}

TEST(SlotsTest, OfFourRanksWithRootTwo) {
  struct Row {
    Kind kind;
    int32_t inputs, inputs_of_root, outputs, outputs_of_root;
  };
  for (const Row& row : {Row{Kind::kAllGather, 1, 1, 4, 4}, Row{Kind::kReduceScatter, 4, 4, 1, 1},
                         Row{Kind::kAllReduce, 4, 4, 4, 4}, Row{Kind::kBroadcast, 1, 1, 1, 1},
                         Row{Kind::kReduce, 1, 1, 1, 1}, Row{Kind::kGather, 1, 1, 0, 4},
                         Row{Kind::kScatter, 0, 4, 1, 1}, Row{Kind::kAllToAll, 4, 4, 4, 4},
                         Row{Kind::kAllToAllV, 4, 4, 4, 4}}) {
    const Collective collective = Of(row.kind, 4, 2);
    EXPECT_EQ(NumInputSlots(collective, NodeId{1}), row.inputs) << Name(row.kind);
    EXPECT_EQ(NumInputSlots(collective, NodeId{2}), row.inputs_of_root) << Name(row.kind);
    EXPECT_EQ(NumOutputSlots(collective, NodeId{1}), row.outputs) << Name(row.kind);
    EXPECT_EQ(NumOutputSlots(collective, NodeId{2}), row.outputs_of_root) << Name(row.kind);
  }
  EXPECT_EQ(NumInputSlots(Of(Kind::kAllReduce, 4, 0, 1), NodeId{3}), 1);
  // Rank 1 sends its block 3 to rank 3, which takes it as its block 1.
  const Collective all_to_all = Of(Kind::kAllToAll, 4);
  EXPECT_EQ(InputShard(all_to_all, NodeId{1}, 3), ShardId{7});
  EXPECT_EQ(OutputShard(all_to_all, NodeId{3}, 1), ShardId{7});
  // nccl-tests in place: the input of an all-gather is output slot r.
  EXPECT_EQ(InPlaceInputSlot(Of(Kind::kAllGather, 4), NodeId{3}, 3), 0);
  EXPECT_EQ(InPlaceInputSlot(Of(Kind::kAllGather, 4), NodeId{3}, 2), -1);
  EXPECT_EQ(InPlaceInputSlot(Of(Kind::kReduceScatter, 4), NodeId{3}, 0), 3);
  EXPECT_EQ(InPlaceInputSlot(all_to_all, NodeId{1}, 1), -1);
}

TEST(SlotsTest, EveryShardHasOneSlotWhereItBeginsAndEnds) {
  for (const Kind kind : kKinds)
    for (const int32_t ranks : {1, 2, 3, 5}) {
      if (kind == Kind::kAllToAllV && ranks == 1) continue;  // a demand is between ranks
      for (int32_t root = 0; root < ranks; ++root) {
        const Collective collective = Of(kind, ranks, root);
        for (int32_t r = 0; r < ranks; ++r) {
          const NodeId rank{r};
          for (ShardId shard : collective.Shards()) {
            const int32_t input = InputSlot(collective, rank, shard);
            const int32_t output = OutputSlot(collective, rank, shard);
            EXPECT_EQ(input >= 0, collective.contributors(shard).Contains(rank));
            EXPECT_EQ(output >= 0, collective.destinations(shard).Contains(rank));
            if (input >= 0) {
              EXPECT_LT(input, NumInputSlots(collective, rank));
              EXPECT_EQ(InputShard(collective, rank, input), shard);
            }
            if (output >= 0) {
              EXPECT_LT(output, NumOutputSlots(collective, rank));
              EXPECT_EQ(OutputShard(collective, rank, output), shard);
            }
          }
        }
      }
    }
}

}  // namespace
}  // namespace tutti

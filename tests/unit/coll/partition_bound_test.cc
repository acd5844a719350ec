#include "partition_bound.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tutti/base/random.h"
#include "tutti/coll/bounds.h"
#include "unit/coll/networks.h"

namespace tutti {
namespace {

using namespace testing_networks;

Topology AnyNetwork(Random& random) {
  const auto n = static_cast<int32_t>(2 + random.Below(6));
  Topology::Builder builder(n);
  const auto bandwidth = [&random] { return static_cast<int64_t>(1 + random.Below(20)); };
  for (int32_t rank = 0; rank < n; ++rank)
    builder.AddLink(NodeId{rank}, NodeId{(rank + 1) % n}, {bandwidth(), 0});
  for (uint64_t extra = random.Below(4 * static_cast<uint64_t>(n)); extra > 0; --extra) {
    const NodeId tail{static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)))};
    const NodeId head{static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)))};
    if (tail != head) builder.AddLink(tail, head, {bandwidth(), 0});
  }
  return *std::move(builder).Build();
}

TEST(PartitionBoundProperty, IsTheBestOfAllPartitions) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = AnyNetwork(random);
    const CutNetwork network(topology);
    const Partition found = TightestPartition(network);
    EXPECT_EQ(Rational(found.num_parts - 1) / network.BytesPerSecond(found.capacity),
              TightestPartitionOfAll(topology));
    WideCapacity capacity = 0;
    for (const CutNetwork::Arc& arc : network.arcs)
      if (found.part_of_node[arc.tail.index()] != found.part_of_node[arc.head.index()])
        capacity += arc.capacity;
    EXPECT_TRUE(capacity == found.capacity);
  }
}

// Four boxes of two ranks on a ring: within a box a cable of 4 bytes/s, from each rank one of
// 1 byte/s to the next box. All ranks apart: 14 crossings over 8 * 4 + 16 * 1 = 48, which is more
// than M / 4 through the cut of a box. Boxes apart: 6 over 16.
TEST(PartitionBoundTest, BoxesOnARingLimitMoreThanTheirRanks) {
  Topology::Builder builder(8);
  for (int32_t box = 0; box < 4; ++box) {
    builder.AddDuplex(NodeId{2 * box}, NodeId{2 * box + 1}, {4, 0});
    for (int32_t k = 0; k < 2; ++k)
      builder.AddDuplex(NodeId{2 * box + k}, NodeId{(2 * box + 2 + k) % 8}, {1, 0});
  }
  const Topology topology = *std::move(builder).Build();
  const Collective collective = *Collective::Make(CollectiveKind::kAllReduce, 8);
  const Bounds bounds = *ComputeBounds(topology, collective);
  EXPECT_EQ(bounds.seconds_per_byte, Rational(6, 16)) << bounds.seconds_per_byte.ToString();
  EXPECT_EQ(bounds.bandwidth_reason, "6 crossings of M between 4 parts of the ranks");
}

}  // namespace
}  // namespace tutti

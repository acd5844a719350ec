#include "partition_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "networks.h"
#include "tutti/base/random.h"
#include "tutti/bounds/bounds.h"

namespace tutti {
namespace {

using namespace testing_networks;

Topology AnyNetwork(Random& random, int32_t num_switches) {
  const auto num_ranks = static_cast<int32_t>(2 + random.Below(num_switches == 0 ? 6 : 4));
  const int32_t n = num_ranks + num_switches;
  Topology::Builder builder(num_ranks, num_switches);
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

// The fewest messages after which each of `num_parts` knows what all knew at first, by trying all:
// a message tells one part what one other knows. What an earlier message held is less, so copies
// that are delivered later are in it too.
// `helpers` more know nothing at first, may be told and tell, and need not know.
int32_t FewestMessages(uint32_t num_parts, uint32_t helpers = 0) {
  using Knowledge = std::vector<uint32_t>;  // of each part: whose contributions
  const auto is_goal = [&](const Knowledge& known) {
    return std::all_of(known.begin(), known.begin() + num_parts,
                       [&](uint32_t whose) { return whose == (1U << num_parts) - 1; });
  };
  Knowledge start(num_parts + helpers, 0);
  for (uint32_t part = 0; part < num_parts; ++part) start[part] = 1U << part;
  std::set<Knowledge> seen = {start}, layer = {start};
  for (int32_t messages = 0;; ++messages) {
    if (std::any_of(layer.begin(), layer.end(), is_goal)) return messages;
    std::set<Knowledge> next;
    for (const Knowledge& known : layer)
      for (uint32_t from = 0; from < num_parts + helpers; ++from)
        for (uint32_t to = 0; to < num_parts + helpers; ++to) {
          Knowledge after = known;
          after[to] |= known[from];
          if (seen.insert(after).second) next.insert(after);
        }
    layer = std::move(next);
  }
}

TEST(PartitionBoundTest, NoPartsKnowAllAfterFewerMessages) {
  for (uint32_t num_parts = 2; num_parts <= 4; ++num_parts)
    EXPECT_EQ(FewestMessages(num_parts), static_cast<int32_t>(2 * (num_parts - 1)));
}

// A switch that reduces saves no message, if those into it count, too.
TEST(ReducingPartitionTest, NoPartsKnowAllAfterFewerMessagesWithHelp) {
  for (uint32_t num_parts = 2; num_parts <= 3; ++num_parts)
    for (uint32_t helpers = 1; helpers <= 2; ++helpers)
      EXPECT_EQ(FewestMessages(num_parts, helpers), static_cast<int32_t>(2 * (num_parts - 1)));
}

Bounds AllReduceBounds(const Topology& topology) {
  return *ComputeBounds(topology,
                        *Collective::Make(CollectiveKind::kAllReduce, topology.num_ranks()));
}

// Eight ranks of 1 byte/s on one switch: 14 crossings over 8 bytes/s into the ranks where it only
// forwards. Where it reduces each rank sends its share once and hears the sum once, M over its own
// link, and 14 over the 16 of all links says less.
TEST(ReducingPartitionTest, OneSwitchIsLimitedByALink) {
  for (const bool reduces : {false, true}) {
    Topology::Builder builder(8, 1);
    for (int32_t rank = 0; rank < 8; ++rank) builder.AddDuplex(NodeId{rank}, NodeId{8}, {1, 0});
    if (reduces) builder.SetReduces(NodeId{8});
    const Bounds bounds = AllReduceBounds(*std::move(builder).Build());
    EXPECT_EQ(bounds.seconds_per_byte, reduces ? Rational(1) : Rational(14, 8));
  }
}

// Four boxes of two ranks, each on a switch at 9 bytes/s a rank; all ranks on one more at 1 byte/s
// that only forwards. Boxes apart, with their switches: 6 crossings over 4 * 2, whether the
// boxes' own switches reduce or not. Where the outer one does it is a part, too: 6 over 8 + 8, less
// than M / 2 out of a box.
TEST(ReducingPartitionTest, SwitchesBelongToTheirBoxes) {
  for (int32_t reducing = 0; reducing < 4; ++reducing) {
    Topology::Builder builder(8, 5);
    for (int32_t rank = 0; rank < 8; ++rank) {
      builder.AddDuplex(NodeId{rank}, NodeId{8 + rank / 2}, {9, 0});
      builder.AddDuplex(NodeId{rank}, NodeId{12}, {1, 0});
    }
    if ((reducing & 1) != 0)
      for (int32_t box = 0; box < 4; ++box) builder.SetReduces(NodeId{8 + box});
    if ((reducing & 2) != 0) builder.SetReduces(NodeId{12});
    const Bounds bounds = AllReduceBounds(*std::move(builder).Build());
    EXPECT_EQ(bounds.seconds_per_byte, (reducing & 2) != 0 ? Rational(1, 2) : Rational(6, 8))
        << reducing;
  }
}

// The more switches reduce the less is proven, and never less than what crosses a cut.
TEST(ReducingPartitionProperty, NeverLimitsMoreThanWithoutSums) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology plain = AnyNetwork(random, static_cast<int32_t>(1 + seed % 3));
    Topology::Builder builder(plain.num_ranks(), plain.num_nodes() - plain.num_ranks());
    for (LinkId link : plain.Links())
      builder.AddLink(plain.tail(link), plain.head(link), plain.spec(link));
    for (NodeId node : plain.Nodes())
      if (!plain.is_rank(node) && random.Below(2) == 0) builder.SetReduces(node);
    const Topology reducing = *std::move(builder).Build();
    const Bounds less = AllReduceBounds(reducing), more = AllReduceBounds(plain);
    EXPECT_LE(less.seconds_per_byte, more.seconds_per_byte);
    if (!reducing.has_reducing_switches()) continue;
    for (const auto kind : {CollectiveKind::kReduceScatter, CollectiveKind::kReduce}) {
      const Collective collective = *Collective::Make(kind, plain.num_ranks());
      EXPECT_EQ(ComputeBounds(reducing, collective)->seconds_per_byte,
                ComputeBounds(plain, collective)->seconds_per_byte);
    }
  }
}

TEST(PartitionBoundProperty, IsTheBestOfAllPartitions) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = AnyNetwork(random, static_cast<int32_t>(seed % 4));
    const CutNetwork network(topology);
    const Partition found = TightestPartition(network);
    EXPECT_EQ(Rational(found.num_parts - 1) / network.BytesPerSecond(found.capacity),
              TightestPartitionOfAll(topology));
    if (topology.has_switches()) continue;
    WideCapacity capacity = 0;
    for (const CutNetwork::Arc& arc : network.arcs)
      if (found.part_of_rank[arc.tail.index()] != found.part_of_rank[arc.head.index()])
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

// Three boxes of two ranks, each on a switch of its own at 6 bytes/s a rank; all ranks on one more
// at 1 byte/s. Boxes apart take in 2 bytes/s each: 4 crossings over 6. All ranks apart: 10 over
// 6 * 7, and M / 2 through the cut of a box.
TEST(PartitionBoundTest, SwitchesBetweenBoxesAreInNoBox) {
  Topology::Builder builder(6, 4);
  for (int32_t rank = 0; rank < 6; ++rank) {
    builder.AddDuplex(NodeId{rank}, NodeId{6 + rank / 2}, {6, 0});
    builder.AddDuplex(NodeId{rank}, NodeId{9}, {1, 0});
  }
  const Topology topology = *std::move(builder).Build();
  const Collective collective = *Collective::Make(CollectiveKind::kAllReduce, 6);
  const Bounds bounds = *ComputeBounds(topology, collective);
  EXPECT_EQ(bounds.seconds_per_byte, Rational(4, 6)) << bounds.seconds_per_byte.ToString();
  EXPECT_EQ(bounds.bandwidth_reason, "4 crossings of M between 3 parts of the ranks");
}

// A rank's link to a switch is wide on its way out: copies made there may make use of that, and
// only what comes in is counted. Three ranks take in 1 byte/s each: 4 crossings over 3.
TEST(PartitionBoundTest, OnlyWhatComesInCounts) {
  Topology::Builder builder(3, 1);
  for (int32_t rank = 0; rank < 3; ++rank) {
    builder.AddLink(NodeId{rank}, NodeId{3}, {rank == 0 ? 9 : 1, 0});
    builder.AddLink(NodeId{3}, NodeId{rank}, {1, 0});
  }
  const Topology topology = *std::move(builder).Build();
  const Bounds bounds = *ComputeBounds(topology, *Collective::Make(CollectiveKind::kAllReduce, 3));
  EXPECT_EQ(bounds.seconds_per_byte, Rational(4, 3)) << bounds.seconds_per_byte.ToString();
}

}  // namespace
}  // namespace tutti

// Networks of numbers modulo n, against the rooms that know nothing of their symmetry.
#include "cyclic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tutti/base/random.h"
#include "tutti/coll/collective.h"
#include "tutti/synth/bfb.h"
#include "tutti/synth/expand_cost.h"
#include "tutti/topo/properties.h"

namespace tutti::design {
namespace {

// 0 -> 1, 2 modulo 5: 1 and 2 in one hop, 3 and 4 in two.
TEST(Cyclic, ByHand) {
  CyclicMeasure measure(5);
  EXPECT_EQ(measure.Measure({1, 2}), (CyclicReach{2, 6}));
  // 3 = 1 + 2 = 2 + 1 over both links, 4 = 2 + 2 over one: each link carries one of the two.
  EXPECT_TRUE(IsCyclicBalanced(5, {1, 2}));
  // 0 -> 1, 3 modulo 4: the ring, whose rank 2 comes half over each link.
  EXPECT_TRUE(IsCyclicBalanced(4, {1, 3}));
  // 0 -> 1, 4 modulo 6: 2 = 1 + 1 = 4 + 4, 5 = 1 + 4 = 4 + 1, then 3 = 2 + 1 = 5 + 4 in step 3.
  EXPECT_EQ(CyclicMeasure(6).Measure({1, 4}), (CyclicReach{3, 9}));
  // 0 -> 2, 4 modulo 6 never reaches the odd ones.
  EXPECT_EQ(CyclicMeasure(6).Measure({2, 4}), std::nullopt);
}

TEST(Cyclic, AgreesWithBreadthFirstBroadcast) {
  Random random(11);
  int32_t balanced = 0, unbalanced = 0;
  for (int time = 0; time < 300; ++time) {
    const auto ranks = static_cast<int32_t>(3 + random.Below(150));
    std::set<int32_t> drawn{1};
    for (uint64_t more = random.Below(4); more > 0; --more)
      drawn.insert(static_cast<int32_t>(1 + random.Below(static_cast<uint64_t>(ranks - 1))));
    const std::vector<int32_t> offsets(drawn.begin(), drawn.end());
    Topology::Builder builder(ranks);
    for (int32_t rank = 0; rank < ranks; ++rank)
      for (int32_t offset : offsets)
        builder.AddLink(NodeId{rank}, NodeId{(rank + offset) % ranks}, {});
    const Result<Topology> topology = std::move(builder).Build();
    ASSERT_TRUE(topology);
    const HopStatistics hops = CountHops(*topology);
    EXPECT_EQ(CyclicMeasure(ranks).Measure(offsets),
              (CyclicReach{hops.diameter, hops.total_hops / ranks}));
    const Result<BfbCost> cost =
        ComputeBfbCost(*topology, *Collective::Make(CollectiveKind::kAllGather, ranks), {});
    ASSERT_TRUE(cost);
    const bool optimal = *cost->tb == BestTb(ranks);
    EXPECT_EQ(IsCyclicBalanced(ranks, offsets), optimal);
    ++(optimal ? balanced : unbalanced);
  }
  EXPECT_GT(balanced, 20);
  EXPECT_GT(unbalanced, 3);
}

}  // namespace
}  // namespace tutti::design

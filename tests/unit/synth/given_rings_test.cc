#include "tutti/synth/given_rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/parse.h"
#include "tutti/base/random.h"
#include "tutti/sched/cost.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

using Order = std::vector<NodeId>;
using testing::HasSubstr;

Order Ranks(const std::vector<int32_t>& numbers) {
  Order order;
  for (const int32_t number : numbers) order.push_back(NodeId{number});
  return order;
}

// The network that has just the links of these rings.
Topology NetworkOf(const std::vector<Order>& rings) {
  Topology::Builder builder(static_cast<int32_t>(rings[0].size()));
  for (const Order& ring : rings)
    for (size_t i = 0; i < ring.size(); ++i)
      builder.AddLink(ring[i], ring[(i + 1) % ring.size()],
                      {.bandwidth = 12'500'000, .alpha_ps = 1'000'000});
  return *std::move(builder).Build();
}

void ExpectRight(const std::vector<Order>& rings, CollectiveKind kind) {
  const Topology network = NetworkOf(rings);
  const Collective collective = *Collective::Make(kind, network.num_ranks());
  const Result<Schedule> schedule = ScheduleOverRings(network, collective, rings, {});
  ASSERT_TRUE(schedule) << schedule.error().message;
  const VerifyReport report = Verify(network, collective, *schedule);
  EXPECT_TRUE(report.verified()) << Name(kind) << " over " << rings.size() << " rings";
  // Every link carries as much as every other: each ring has an equal part.
  if (kind == CollectiveKind::kBroadcast) return;
  const int32_t n = network.num_ranks(), once = n - 1;
  const int64_t rounds = kind == CollectiveKind::kAllReduce ? 2 : 1;
  EXPECT_EQ(schedule->num_steps, rounds * once) << Name(kind);
}

TEST(GivenRingsTest, AreFollowedByEveryCollective) {
  Random random(11);
  for (int32_t n = 2; n <= 9; ++n)
    for (int32_t count = 1; count <= 4; ++count) {
      std::vector<Order> rings;
      for (int32_t ring = 0; ring < count; ++ring) {
        std::vector<int32_t> ranks(static_cast<size_t>(n));
        std::iota(ranks.begin(), ranks.end(), 0);
        for (size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[random.Below(i)]);
        rings.push_back(Ranks(ranks));
      }
      if (n % 2 == 0) rings.push_back(rings.front());  // the same again: parallel links
      for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                        CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast})
        ExpectRight(rings, kind);
    }
}

// Two rings the same way over parallel links: chunk 0 goes over the first of them, chunk 1 over the second.
TEST(GivenRingsTest, TakeParallelLinksInTurn) {
  const std::vector<Order> rings = {Ranks({0, 1, 2}), Ranks({0, 1, 2})};
  const Topology network = NetworkOf(rings);
  const Result<Schedule> schedule =
      ScheduleOverRings(network, *Collective::Make(CollectiveKind::kAllGather, 3), rings, {});
  ASSERT_TRUE(schedule) << schedule.error().message;
  ASSERT_EQ(schedule->units_per_shard, 2);
  for (const Transfer& transfer : schedule->transfers) {
    const auto links = network.OutLinks(network.tail(transfer.link));
    const bool is_first = *links.begin() == transfer.link;
    EXPECT_EQ(transfer.begin, is_first ? 0 : 1);
  }
}

TEST(GivenRingsTest, FaultsAreNamed) {
  const Topology network = NetworkOf({Ranks({0, 1, 2, 3})});
  const auto fault = [&](const std::vector<Order>& rings, CollectiveKind kind) {
    const auto made =
        ScheduleOverRings(network, *Collective::Make(kind, network.num_ranks()), rings, {});
    return made ? "" : made.error().message;
  };
  const auto kind = CollectiveKind::kAllGather;
  EXPECT_EQ(fault({}, kind), "no rings");
  EXPECT_THAT(fault({Ranks({0, 1, 2})}, kind),
              HasSubstr("ring 0: wanted each of the 4 ranks once"));
  EXPECT_THAT(fault({Ranks({0, 1, 2, 3}), Ranks({0, 1, 1, 3})}, kind), HasSubstr("ring 1: wanted"));
  EXPECT_THAT(fault({Ranks({0, 2, 1, 3})}, kind), HasSubstr("lacks links"));
  EXPECT_THAT(fault({Ranks({0, 1, 2, 3}), Ranks({0, 1, 2, 3})}, kind), HasSubstr("lacks links"));
}

}  // namespace
}  // namespace tutti

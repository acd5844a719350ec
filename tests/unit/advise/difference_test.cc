#include "tutti/advise/difference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "advise_support.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

TEST(DifferenceTest, SameTransfersInWhateverOrder) {
  const Topology topology = Parse("torus(3,3)");
  const Schedule schedule = MustMake(topology, Kind::kAllReduce, "bfb");
  Schedule other = schedule;
  other.algorithm = "somebody";
  const auto second_step =
      std::find_if(other.transfers.begin(), other.transfers.end(),
                   [](const Transfer& transfer) { return transfer.step == 1; });
  std::reverse(other.transfers.begin(), second_step);
  EXPECT_TRUE(SameTransfers(schedule, other));
}

TEST(DifferenceTest, SameTransfersInFinerUnits) {
  const Topology topology = Parse("ring(4)");
  const Schedule schedule = MustMake(topology, Kind::kAllGather, "ring");
  Schedule finer = schedule;
  finer.units_per_shard *= 3;
  for (Transfer& transfer : finer.transfers) {
    transfer.begin *= 3;
    transfer.end *= 3;
  }
  EXPECT_TRUE(SameTransfers(schedule, finer));
}

TEST(DifferenceTest, OneChangeIsSeen) {
  const Topology topology = Parse("mesh(2,3,bw=[1,2]GB/s)");
  const Schedule schedule = MustMake(topology, Kind::kAllGather, "ten");
  ASSERT_EQ(schedule.kind, ScheduleKind::kTimed);
  Schedule later = schedule;
  ++later.start_ps.back();
  EXPECT_FALSE(SameTransfers(schedule, later));
  Schedule reduces = schedule;
  reduces.transfers.front().op = TransferOp::kReduce;
  EXPECT_FALSE(SameTransfers(schedule, reduces));
  Schedule fewer = schedule;
  fewer.transfers.pop_back();
  fewer.start_ps.pop_back();
  EXPECT_FALSE(SameTransfers(schedule, fewer));
  Schedule other_size = schedule;
  ++other_size.size_bytes;
  EXPECT_FALSE(SameTransfers(schedule, other_size));
}

TEST(DifferenceTest, SaysWhatIsNotComparable) {
  const Topology ring = Parse("ring(4)"), torus = Parse("torus(2,2,bw=1GB/s)"),
                 larger = Parse("ring(5)");
  const Schedule gather = MustMake(ring, Kind::kAllGather, "ring"),
                 reduce = MustMake(ring, Kind::kAllReduce, "ring"),
                 on_torus = MustMake(torus, Kind::kAllGather, "ring"),
                 of_five = MustMake(larger, Kind::kAllGather, "ring");
  EXPECT_TRUE(WhyNotComparable({ring, gather}, {ring, gather}).empty());
  const std::vector<std::string> kinds = WhyNotComparable({ring, gather}, {ring, reduce});
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_NE(kinds.front().find("all-gather and all-reduce"), std::string::npos);
  EXPECT_NE(WhyNotComparable({ring, gather}, {torus, on_torus}).front().find("other networks"),
            std::string::npos);
  EXPECT_NE(WhyNotComparable({ring, gather}, {larger, of_five}).front().find("4 and 5"),
            std::string::npos);
  Schedule rooted{.collective = *Collective::Make(Kind::kBroadcast, 4)};
  Schedule elsewhere{.collective = *Collective::Make(Kind::kBroadcast, 4, {.root = 2})};
  EXPECT_NE(WhyNotComparable({ring, rooted}, {ring, elsewhere}).front().find("roots: 0 and 2"),
            std::string::npos);
}

// By hand: in both directions 3/8 M over every link, in one 3/4 M over half of them.
TEST(DifferenceTest, LinksThatCarryUnlikeMuch) {
  const Topology topology = Parse("ring(4,bw=1GB/s)");
  const std::vector<LinkTraffic> both = TrafficOf(topology,
                                                  MustMake(topology, Kind::kAllGather, "ring")),
                                 one = TrafficOf(topology,
                                                 MustMake(topology, Kind::kAllGather, "uniring"));
  EXPECT_TRUE(LinkDifferences(topology, both, both).empty());
  const std::vector<LinkDifference> differences = LinkDifferences(topology, both, one);
  ASSERT_EQ(differences.size(), 8U);
  int32_t more = 0;
  for (const LinkDifference& row : differences) {
    EXPECT_EQ(row.a, Rational(3, 8));
    EXPECT_TRUE(row.b == Rational(3, 4) || row.b.is_zero());
    more += row.b > row.a ? 1 : 0;
  }
  EXPECT_EQ(more, 4);
}

TEST(DifferenceTest, TenthsOfArrivals) {
  EXPECT_TRUE(ArrivalOfTenths({}).empty());
  std::vector<SimMessage> trace(2);
  trace[0].arrive_s = 2;
  trace[0].bytes = 9;
  trace[1].arrive_s = 1;
  trace[1].bytes = 1;
  EXPECT_EQ(ArrivalOfTenths(trace), (std::vector<double>{1, 2, 2, 2, 2, 2, 2, 2, 2, 2}));
}

// By hand: the same 3 M in all, over half of the links: later from the first tenth on.
TEST(DifferenceTest, UniringFallsBehindAtOnce) {
  const Topology topology = Parse("ring(4,bw=1GB/s,alpha=1us)");
  const Schedule both = MustMake(topology, Kind::kAllGather, "ring"),
                 one = MustMake(topology, Kind::kAllGather, "uniring");
  const auto behind = FirstBehind({topology, both}, {topology, one}, {.size_bytes = 4'000'000'000});
  ASSERT_TRUE(behind.has_value() && behind->has_value());
  EXPECT_TRUE((*behind)->is_b);
  EXPECT_EQ((*behind)->tenths, 1);
  EXPECT_NEAR((*behind)->time_s, 1.000001, 1e-9);
  EXPECT_NEAR((*behind)->other_s, 0.500001, 1e-9);
  const auto turned = FirstBehind({topology, one}, {topology, both}, {.size_bytes = 4'000'000'000});
  ASSERT_TRUE(turned.has_value() && turned->has_value());
  EXPECT_FALSE((*turned)->is_b);
  const auto same = FirstBehind({topology, both}, {topology, both}, {.size_bytes = 4'000'000'000});
  ASSERT_TRUE(same.has_value());
  EXPECT_FALSE(same->has_value());
}

}  // namespace
}  // namespace tutti

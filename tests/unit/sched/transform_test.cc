#include "tutti/sched/transform.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "sched_testing.h"
#include "tutti/sched/cost.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

std::vector<LinkId> IdentityLinks(const Topology& topology) {
  std::vector<LinkId> map;
  for (LinkId link : topology.Links()) map.push_back(link);
  return map;
}

std::vector<NodeId> IdentityNodes(const Topology& topology) {
  std::vector<NodeId> map;
  for (NodeId node : topology.Nodes()) map.push_back(node);
  return map;
}

// --- Worked examples

TEST(ReverseTest, FigureOneBackwardsIsAReduceScatter) {
  const Topology topology = K22();
  const Schedule gather = K22AllGather(topology);
  const auto partner = ReverseLinks(topology);
  ASSERT_TRUE(partner.has_value());
  const Schedule reversed = Reverse(gather, *partner, topology.Fingerprint());
  EXPECT_EQ(reversed.collective.kind(), CollectiveKind::kReduceScatter);
  ASSERT_EQ(reversed.transfers.size(), 16u);
  // The last transfer of the all-gather: half 1 of shard 3, from 1 to 2, in step 1.
  const Transfer& first = reversed.transfers.front();
  EXPECT_EQ(first,
            (Transfer{ShardId{3}, LinkBetween(topology, 2, 1), 1, 2, 0, TransferOp::kReduce}));
  // Its first: all of shard 0, from 0 to 2, in step 0.
  EXPECT_EQ(reversed.transfers.back(),
            (Transfer{ShardId{0}, LinkBetween(topology, 2, 0), 0, 2, 1, TransferOp::kReduce}));
}

TEST(ReverseTest, AllReduceSwapsReductionsAndCopies) {
  const Topology topology = Ring(2, false);
  Schedule schedule = EmptySchedule(topology, CollectiveKind::kAllReduce);
  schedule.num_steps = 2;
  schedule.transfers = {{ShardId{0}, LinkId{0}, 0, 1, 0, TransferOp::kReduce},
                        {ShardId{0}, LinkId{1}, 0, 1, 1, TransferOp::kCopy}};
  const auto partner = ReverseLinks(topology);
  ASSERT_TRUE(partner.has_value());
  // Reduce at 1 and copy to 0; backwards: the copy 1 -> 0 is now a reduction 0 -> 1.
  EXPECT_EQ(Reverse(schedule, *partner, schedule.topology_fingerprint), schedule);
}

TEST(ReverseTest, AllToAllBlocksSwapSourceAndDestination) {
  const Topology topology = Ring(3, false);
  Schedule schedule = EmptySchedule(topology, CollectiveKind::kAllToAll);
  schedule.num_steps = 2;
  schedule.transfers = {{ShardId{0 * 3 + 2}, LinkId{0}, 0, 1, 0, TransferOp::kCopy},
                        {ShardId{0 * 3 + 2}, LinkId{1}, 0, 1, 1, TransferOp::kCopy}};
  const Schedule reversed = Reverse(schedule, {LinkId{2}, LinkId{1}, LinkId{0}}, 5);
  EXPECT_EQ(reversed.topology_fingerprint, 5u);
  EXPECT_EQ(reversed.transfers[0],
            (Transfer{ShardId{2 * 3 + 0}, LinkId{1}, 0, 1, 0, TransferOp::kCopy}));
  EXPECT_EQ(reversed.transfers[1],
            (Transfer{ShardId{2 * 3 + 0}, LinkId{2}, 0, 1, 1, TransferOp::kCopy}));
}

TEST(ReverseLinksTest, PairsParallelLinksBySpec) {
  const LinkSpec slow{.bandwidth = 1, .alpha_ps = 0}, fast{.bandwidth = 2, .alpha_ps = 0};
  Topology::Builder builder(2);
  builder.AddLink(Node(0), Node(1), slow);  // 0
  builder.AddLink(Node(0), Node(1), fast);  // 1
  builder.AddLink(Node(0), Node(1), slow);  // 2
  builder.AddLink(Node(1), Node(0), fast);  // 3
  builder.AddLink(Node(1), Node(0), slow);  // 4
  builder.AddLink(Node(1), Node(0), slow);  // 5
  const auto partner = ReverseLinks(Must(std::move(builder).Build()));
  ASSERT_TRUE(partner.has_value());
  EXPECT_EQ(*partner, (std::vector<LinkId>{{4}, {3}, {5}, {1}, {0}, {2}}));
}

TEST(ReverseLinksTest, RefusesOneWayAndUnequalCables) {
  EXPECT_FALSE(ReverseLinks(Ring(3, false)).has_value());
  Topology::Builder builder(2);
  builder.AddLink(Node(0), Node(1), {.bandwidth = 5, .alpha_ps = 1});
  builder.AddLink(Node(1), Node(0), {.bandwidth = 5, .alpha_ps = 2});
  EXPECT_FALSE(ReverseLinks(Must(std::move(builder).Build())).has_value());
}

TEST(ConcatenateTest, ReduceScatterThenAllGatherIsAnAllReduce) {
  const Topology topology = Ring(5, true);
  const Schedule gather = RingAllGather(topology);
  const Schedule scatter = Reverse(gather, *ReverseLinks(topology), topology.Fingerprint());
  const Collective all_reduce = Must(Collective::Make(CollectiveKind::kAllReduce, 5));
  const Schedule whole = Must(Concatenate(scatter, gather, all_reduce));
  EXPECT_EQ(whole.num_steps, 8);
  EXPECT_EQ(whole.transfers.size(), 40u);
  EXPECT_EQ(AnalyticCost(topology, whole).tb, Rational(16, 5));  // one of two links
  EXPECT_EQ(whole.algorithm, "by-hand");
}

TEST(SplitHalvesTest, TwoDirectionsOfARingTakeHalfTheTime) {
  const int32_t n = 6;
  const Topology topology = Ring(n, true);
  const Schedule clockwise = RingAllGather(topology);
  std::vector<NodeId> mirror(static_cast<size_t>(n));
  for (int32_t u = 0; u < n; ++u) mirror[static_cast<size_t>(u)] = Node((n - u) % n);
  std::vector<LinkId> links;
  for (LinkId link : topology.Links())
    links.push_back(LinkBetween(topology, mirror[topology.tail(link).index()].value,
                                mirror[topology.head(link).index()].value));
  const Schedule counter = Must(Rename(clockwise, mirror, links, topology.Fingerprint()));
  const Schedule both = Must(SplitHalves(clockwise, counter));
  EXPECT_EQ(both.units_per_shard, 2);
  const StepCost cost = AnalyticCost(topology, both);
  EXPECT_EQ(cost.tl, n - 1);
  EXPECT_EQ(cost.tb, Rational(n - 1, n));
  EXPECT_EQ(AnalyticCost(topology, clockwise).tb, Rational(2 * (n - 1), n));
}

// --- Wrong input

TEST(TransformErrors, NameWhatDoesNotFit) {
  const Topology ring = Ring(4, true);
  const Schedule gather = RingAllGather(ring);
  const Schedule scatter = Reverse(gather, *ReverseLinks(ring), ring.Fingerprint());
  const Collective all_reduce = Must(Collective::Make(CollectiveKind::kAllReduce, 4));
  const auto expect = [](const Result<Schedule>& result, const char* words) {
    ASSERT_FALSE(result.has_value()) << words;
    EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
  };
  expect(Concatenate(gather, scatter, all_reduce), "does not start from");
  expect(Concatenate(scatter, scatter, all_reduce), "does not end at the rank");
  Schedule elsewhere = gather;
  elsewhere.topology_fingerprint ^= 1;
  expect(Concatenate(scatter, elsewhere, all_reduce), "different topologies");
  expect(SplitHalves(gather, elsewhere), "different topologies");
  expect(SplitHalves(gather, scatter), "same collective");
  Schedule timed = gather;
  timed.kind = ScheduleKind::kTimed;
  expect(Concatenate(scatter, timed, all_reduce), "only step schedules");
  expect(Concatenate(scatter, gather, Must(Collective::Make(CollectiveKind::kBroadcast, 4))),
         "4 shards over 4 ranks");
  Schedule fine = gather, finer = scatter;
  fine.units_per_shard = 1'000'003;
  finer.units_per_shard = 1'000'033;
  expect(Concatenate(finer, fine, all_reduce), "no common unit");
  fine.units_per_shard = 1 << 30;
  expect(SplitHalves(fine, fine), "too fine");
  expect(Refine(fine, 2), "2^31");
  expect(Refine(fine, 0), "at least 1");
  finer = scatter;
  finer.num_steps = std::numeric_limits<int32_t>::max();
  expect(Concatenate(finer, gather, all_reduce), "steps");

  std::vector<NodeId> nodes = IdentityNodes(ring);
  std::vector<LinkId> links = IdentityLinks(ring);
  expect(Rename(gather, {Node(0)}, links, 0), "1 nodes for 4 ranks");
  nodes[1] = Node(0);
  expect(Rename(gather, nodes, links, 0), "two ranks become rank 0");
  nodes[1] = Node(4);
  expect(Rename(gather, nodes, links, 0), "no rank");
  nodes[1] = Node(1);
  links[0] = LinkId{1};
  expect(Rename(gather, nodes, links, 0), "two links become link 1");
  links[0] = LinkId{-1};
  expect(Rename(gather, nodes, links, 0), "link -1");
  expect(Rename(gather, nodes, {LinkId{0}}, 0), "the map has 1 links");
}

TEST(TransformErrors, MapsThatAreNoIsomorphismNameALink) {
  const auto expect = [](const auto& result, const char* words) {
    ASSERT_FALSE(result.has_value()) << words;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
  };
  const Topology ring = Ring(4, false);
  const std::vector<NodeId> swap{Node(1), Node(0), Node(2), Node(3)};
  expect(LinkMapOf(ring, ring, swap), "no isomorphism: no link becomes link 0 -> 1 of");
  expect(LinkMapOf(ring, ring, {Node(0)}), "a map of 1 nodes");
  expect(LinkMapOf(ring, ring, {Node(0), Node(0), Node(1), Node(2)}), "no permutation of 0 .. 3");
  expect(LinkMapOf(ring, Ring(4, true), IdentityNodes(ring)), "from 4 to 8 links");
  expect(LinkMapOf(ring, Ring(4, false, {.bandwidth = 7, .alpha_ps = 0}), IdentityNodes(ring)),
         "no link becomes link 0 -> 1 of 7 B/s and 0 ps");
  expect(LinkMapOf(Ring(4, false, {.bandwidth = 7, .alpha_ps = 0}), ring, IdentityNodes(ring)),
         "link 0 finds no link 0 -> 1 of 7 B/s and 0 ps");
  expect(Mirror(ring, RingAllGather(ring), IdentityNodes(ring)), "is no isomorphism");
  Schedule timed = RingAllGather(ring);
  timed.kind = ScheduleKind::kTimed;
  expect(Mirror(ring, timed, IdentityNodes(ring)), "timed");
}

// --- Properties

TEST(TransformProperty, ReverseTwiceIsTheSameSchedule) {
  int checked = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomTopology(random);
    const auto partner = ReverseLinks(topology);  // RandomTopology lays cables only
    ASSERT_TRUE(partner.has_value());
    for (LinkId link : topology.Links()) {
      const LinkId back = (*partner)[link.index()];
      EXPECT_EQ(topology.tail(back), topology.head(link));
      EXPECT_EQ(topology.spec(back), topology.spec(link));
      EXPECT_EQ((*partner)[back.index()], link);
    }
    Schedule schedule = RandomSchedule(random, topology, 40);
    if (schedule.kind != ScheduleKind::kStep) continue;
    ++checked;
    if (schedule.collective.kind() != CollectiveKind::kAllReduce)  // one op a collective
      for (Transfer& transfer : schedule.transfers)
        transfer.op = schedule.collective.reduces() ? TransferOp::kReduce : TransferOp::kCopy;
    const Schedule once = Reverse(schedule, *partner, topology.Fingerprint());
    EXPECT_EQ(Reverse(once, *partner, topology.Fingerprint()), schedule);
    EXPECT_EQ(AnalyticCost(topology, once).tl, AnalyticCost(topology, schedule).tl);
    EXPECT_EQ(AnalyticCost(topology, once).tb, AnalyticCost(topology, schedule).tb);
    EXPECT_EQ(AnalyticCost(topology, once).alpha_s, AnalyticCost(topology, schedule).alpha_s);
  }
  EXPECT_GT(checked, 50);
}

TEST(TransformProperty, RenameByIdentityIsIdentityAndByRotationsComposes) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto n = static_cast<int32_t>(3 + random.Below(5));
    const Topology topology = Ring(n, true);
    const Schedule schedule = RandomSchedule(random, topology, 40);
    const uint64_t fingerprint = topology.Fingerprint();
    EXPECT_EQ(Must(Rename(schedule, IdentityNodes(topology), IdentityLinks(topology), fingerprint)),
              schedule);
    std::vector<NodeId> turn;
    for (int32_t u = 0; u < n; ++u) turn.push_back(Node((u + 1) % n));
    std::vector<LinkId> links;
    for (LinkId link : topology.Links())
      links.push_back(LinkBetween(topology, (topology.tail(link).value + 1) % n,
                                  (topology.head(link).value + 1) % n));
    Schedule turned = schedule;
    for (int32_t k = 0; k < n; ++k) {
      turned = Must(Rename(turned, turn, links, fingerprint));
      if (schedule.kind == ScheduleKind::kStep) {
        EXPECT_EQ(AnalyticCost(topology, turned).tb, AnalyticCost(topology, schedule).tb);
      }
    }
    EXPECT_EQ(turned, schedule);
  }
}

TEST(TransformProperty, RefineKeepsTheCost) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const Topology topology = RandomTopology(random);
    const Schedule schedule = RandomSchedule(random, topology, 40);
    const Result<Schedule> finer = Refine(schedule, 3);
    if (schedule.kind != ScheduleKind::kStep || !finer) continue;
    EXPECT_EQ(finer->units_per_shard, schedule.units_per_shard * 3);
    EXPECT_EQ(AnalyticCost(topology, *finer).tb, AnalyticCost(topology, schedule).tb);
  }
}

}  // namespace
}  // namespace tutti

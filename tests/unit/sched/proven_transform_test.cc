// The verifier's word on what the transforms make.
#include <gtest/gtest.h>

#include <optional>

#include "sched_testing.h"
#include "tutti/sched/cost.h"
#include "tutti/sched/transform.h"
#include "tutti/topo/properties.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

void ExpectProven(const Topology& topology, const Schedule& schedule) {
  const VerifyReport report = Verify(topology, schedule.collective, schedule);
  EXPECT_TRUE(report.verified()) << Name(schedule.collective.kind()) << ": "
                                 << report.violations.front().message;
}

// Every rank hears of shard v in the step that is its distance from v, by its first in-link that
// can tell it. Works on any network of ranks.
Schedule BreadthFirst(const Topology& topology, CollectiveKind kind, int32_t root) {
  Collective::Options options;
  options.root = root;
  Schedule schedule{Must(Collective::Make(kind, topology.num_ranks(), options))};
  schedule.topology_fingerprint = topology.Fingerprint();
  const auto n = static_cast<size_t>(topology.num_ranks());
  for (ShardId shard : schedule.collective.Shards()) {
    const NodeId source = schedule.collective.contributors(shard).one;
    std::vector<int32_t> distance(n, -1);
    std::vector<NodeId> queue{source};
    distance[source.index()] = 0;
    for (size_t i = 0; i < queue.size(); ++i)
      for (LinkId link : topology.OutLinks(queue[i])) {
        const NodeId head = topology.head(link);
        if (distance[head.index()] >= 0) continue;
        distance[head.index()] = distance[queue[i].index()] + 1;
        queue.push_back(head);
        const int32_t step = distance[queue[i].index()];
        schedule.transfers.push_back({shard, link, 0, 1, step, TransferOp::kCopy});
        schedule.num_steps = std::max(schedule.num_steps, step + 1);
      }
  }
  SortBySteps(schedule);
  return schedule;
}

// Ranks only; cables, or one-way links over a ring that keeps it connected.
Topology RandomRanks(Random& random, bool duplex) {
  const auto n = static_cast<int32_t>(2 + random.Below(7));
  Topology::Builder builder(n);
  const auto add = [&](int32_t tail, int32_t head) {
    const LinkSpec spec{static_cast<int64_t>(1 + random.Below(3)) * 1'000'000'000, 1000};
    builder.AddLink(Node(tail), Node(head), spec);
    if (duplex) builder.AddLink(Node(head), Node(tail), spec);
  };
  for (int32_t u = 0; u < n; ++u) add(u, (u + 1) % n);
  for (uint64_t extra = random.Below(8); extra > 0; --extra) {
    const auto tail = static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)));
    add(tail, (tail + 1 + static_cast<int32_t>(random.Below(static_cast<uint64_t>(n) - 1))) % n);
  }
  return Must(std::move(builder).Build());
}

struct Renamed {
  Topology topology;
  std::vector<NodeId> node_map;
  std::vector<LinkId> link_map;
};

// The same network under other names, with its links in another order.
Renamed Shuffled(const Topology& topology, Random& random) {
  std::vector<NodeId> node_map;
  for (NodeId node : topology.Nodes()) node_map.push_back(node);
  std::vector<LinkId> order;
  for (LinkId link : topology.Links()) order.push_back(link);
  const auto shuffle = [&random](auto& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.Below(i)]);
  };
  shuffle(node_map);
  shuffle(order);
  Topology::Builder builder(topology.num_ranks());
  for (LinkId link : order)
    builder.AddLink(node_map[topology.tail(link).index()], node_map[topology.head(link).index()],
                    topology.spec(link));
  Topology result = Must(std::move(builder).Build());
  // Links of one tail keep the order in which they were added.
  std::vector<LinkId> link_map(order.size());
  for (NodeId node : topology.Nodes()) {
    auto next = result.OutLinks(node_map[node.index()]).begin();
    for (LinkId link : order) {
      if (topology.tail(link) != node) continue;
      link_map[link.index()] = *next;
      ++next;
    }
  }
  return {std::move(result), std::move(node_map), std::move(link_map)};
}

TEST(ProvenTransformTest, FigureOneGatherScatterAndAllReduce) {
  const Topology topology = K22();
  const Schedule gather = K22AllGather(topology);
  const Schedule scatter = Reverse(gather, *ReverseLinks(topology), topology.Fingerprint());
  const Schedule whole =
      Must(Concatenate(scatter, gather, Must(Collective::Make(CollectiveKind::kAllReduce, 4))));
  for (const Schedule* schedule : {&gather, &scatter, &whole}) ExpectProven(topology, *schedule);
  ExpectProven(topology, Reverse(whole, *ReverseLinks(topology), topology.Fingerprint()));
  EXPECT_EQ(AnalyticCost(topology, whole).tb, Rational(3, 2));
}

TEST(ProvenTransformTest, RingAllReduceIsReduceScatterThenAllGather) {
  for (int32_t n : {2, 3, 8}) {
    const Topology topology = Ring(n, true);
    const Schedule gather = RingAllGather(topology);
    const Schedule scatter = Reverse(gather, *ReverseLinks(topology), topology.Fingerprint());
    ExpectProven(topology, gather);
    ExpectProven(topology, scatter);
    ExpectProven(
        topology,
        Must(Concatenate(scatter, gather, Must(Collective::Make(CollectiveKind::kAllReduce, n)))));
  }
}

TEST(ProvenTransformProperty, OnCablesEveryTransformKeepsCorrectness) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomRanks(random, true);
    const std::vector<LinkId> partner = *ReverseLinks(topology);
    const uint64_t fingerprint = topology.Fingerprint();
    const int32_t n = topology.num_ranks();
    const auto root = static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)));
    for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kBroadcast}) {
      const Schedule spread = BreadthFirst(topology, kind, root);
      ExpectProven(topology, spread);
      const Schedule reduce = Reverse(spread, partner, fingerprint);
      ExpectProven(topology, reduce);
      Collective::Options options;
      options.all_reduce_shards = spread.collective.num_shards();
      const Collective all_reduce = Must(Collective::Make(CollectiveKind::kAllReduce, n, options));
      const Schedule whole =
          Must(Concatenate(Must(Refine(reduce, 3)), Must(Refine(spread, 2)), all_reduce));
      EXPECT_EQ(whole.units_per_shard, 6);
      ExpectProven(topology, whole);
      ExpectProven(topology, Reverse(whole, partner, fingerprint));
      const Schedule overlapped =
          Must(Overlap(topology, FlipShards(Refine(reduce, 3).value()), spread, all_reduce));
      ExpectProven(topology, overlapped);
      EXPECT_LE(overlapped.num_steps, whole.num_steps);
      EXPECT_LE(AnalyticCost(topology, overlapped).tb, AnalyticCost(topology, whole).tb);

      const Renamed other = Shuffled(topology, random);
      const Schedule renamed =
          Must(Rename(whole, other.node_map, other.link_map, other.topology.Fingerprint()));
      ExpectProven(other.topology, renamed);
      const std::vector<LinkId> links = Must(LinkMapOf(topology, other.topology, other.node_map));
      ExpectProven(other.topology,
                   Must(Rename(whole, other.node_map, links, other.topology.Fingerprint())));
      EXPECT_EQ(AnalyticSeconds(other.topology, renamed, 1 << 20),
                AnalyticSeconds(topology, whole, 1 << 20));
      ExpectProven(topology, Must(SplitHalves(whole, whole)));
    }
  }
}

TEST(ProvenTransformProperty, OnOneWayLinksTheTransposeServes) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomRanks(random, false);
    // Corollary 1.1: what gathers on the transpose scatters on the network.
    std::vector<LinkId> link_map;
    const Topology transpose = TransposeTopology(topology, &link_map);
    const Schedule there = BreadthFirst(transpose, CollectiveKind::kAllGather, 0);
    ExpectProven(transpose, there);
    const Schedule scatter = Reverse(there, link_map, topology.Fingerprint());
    ExpectProven(topology, scatter);
    const Schedule gather = BreadthFirst(topology, CollectiveKind::kAllGather, 0);
    ExpectProven(topology, Must(Concatenate(scatter, gather,
                                            Must(Collective::Make(CollectiveKind::kAllReduce,
                                                                  topology.num_ranks())))));
  }
}

// Theorem 2 on the one-way ring, which becomes its transpose by u -> -u.
TEST(ProvenTransformTest, MirroredRingGatherScattersOnTheSameOneWayRing) {
  for (int32_t n : {2, 3, 7}) {
    const Topology topology = Ring(n, false);
    std::vector<NodeId> mirror;
    for (int32_t u = 0; u < n; ++u) mirror.push_back(Node((n - u) % n));
    const Schedule gather = RingAllGather(topology);
    const Schedule scatter = Must(Mirror(topology, gather, mirror));
    EXPECT_EQ(scatter.collective.kind(), CollectiveKind::kReduceScatter);
    ExpectProven(topology, scatter);
    EXPECT_EQ(AnalyticCost(topology, scatter).tb, AnalyticCost(topology, gather).tb);
    ExpectProven(
        topology,
        Must(Concatenate(scatter, gather, Must(Collective::Make(CollectiveKind::kAllReduce, n)))));
    EXPECT_EQ(Must(Mirror(topology, scatter, mirror)), gather);
  }
}

// All-to-all over a ring, block by block, with demands: reversed it serves the transposed demands.
TEST(ProvenTransformTest, AllToAllReversedServesTheTransposedDemand) {
  const int32_t n = 5;
  const Topology topology = Ring(n, true);
  Random random(1);
  Collective::Options options;
  for (int32_t i = 0; i < n * n; ++i)
    options.demand.push_back(static_cast<int64_t>(1 + random.Below(9)));
  Schedule schedule{Must(Collective::Make(CollectiveKind::kAllToAllV, n, options))};
  schedule.topology_fingerprint = topology.Fingerprint();
  schedule.num_steps = n - 1;
  for (int32_t s = 0; s < n; ++s)
    for (int32_t hop = 1; hop < n; ++hop)
      for (int32_t t = 0; t < hop; ++t)
        schedule.transfers.push_back({ShardId{s * n + (s + hop) % n},
                                      LinkBetween(topology, (s + t) % n, (s + t + 1) % n), 0, 1, t,
                                      TransferOp::kCopy});
  SortBySteps(schedule);
  ExpectProven(topology, schedule);
  const Schedule reversed = Reverse(schedule, *ReverseLinks(topology), topology.Fingerprint());
  EXPECT_EQ(reversed.collective.demand()[1], options.demand[static_cast<size_t>(n)]);
  ExpectProven(topology, reversed);
  const Renamed other = Shuffled(topology, random);
  ExpectProven(other.topology, Must(Rename(reversed, other.node_map, other.link_map,
                                           other.topology.Fingerprint())));
}

// 0 - 1 - 2, root 0, three chunks: chunk k leaves the root in step k.
TEST(ProvenTransformTest, PipelinesOverlapChunkByChunk) {
  Topology::Builder builder(3);
  builder.AddDuplex(Node(0), Node(1), {});
  builder.AddDuplex(Node(1), Node(2), {});
  const Topology path = Must(std::move(builder).Build());
  Schedule spread{Must(Collective::Make(CollectiveKind::kBroadcast, 3))};
  spread.topology_fingerprint = path.Fingerprint();
  spread.units_per_shard = 3;
  spread.num_steps = 4;
  for (int32_t hop = 0; hop < 2; ++hop)
    for (int32_t chunk = 0; chunk < 3; ++chunk)
      spread.transfers.push_back({ShardId{0}, LinkBetween(path, hop, hop + 1), chunk, chunk + 1,
                                  chunk + hop, TransferOp::kCopy});
  SortBySteps(spread);
  const Schedule reduce = Reverse(spread, *ReverseLinks(path), path.Fingerprint());
  Collective::Options one_shard;
  one_shard.all_reduce_shards = 1;
  const Collective all_reduce = Must(Collective::Make(CollectiveKind::kAllReduce, 3, one_shard));
  // Reversed, chunk 2 is reduced first and chunk 0, which is spread first, last.
  EXPECT_EQ(Must(Overlap(path, reduce, spread, all_reduce)).num_steps, 4 + 4);
  // Flipped, chunk 0 is reduced after 2 steps and the rest follows a step apart.
  const Schedule overlapped = Must(Overlap(path, FlipShards(reduce), spread, all_reduce));
  EXPECT_EQ(overlapped.num_steps, 2 + 4);
  ExpectProven(path, overlapped);
}

}  // namespace
}  // namespace tutti

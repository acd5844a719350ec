// Networks of the tests of forest, and how near its schedules are to the bound.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "forest/routed_trees.h"
#include "forest/tree_network.h"
#include "support/build.h"
#include "support/digraphs.h"
#include "tutti/base/random.h"
#include "unit/synth/classic_support.h"

namespace tutti::forest_test {

using classic_test::Algorithm;
using test_support::MustBuild;
using test_support::Parse;

inline constexpr LinkSpec kFast{.bandwidth = 450'000'000'000, .alpha_ps = 500'000};
inline constexpr LinkSpec kSlow{.bandwidth = 50'000'000'000, .alpha_ps = 500'000};

// Boxes of ranks around a fast switch each, every rank with a slow link to one fabric switch.
inline Topology Boxes(int32_t boxes, int32_t ranks) {
  Topology::Builder builder(boxes * ranks, boxes + 1);
  for (int32_t box = 0; box < boxes; ++box)
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const NodeId node{box * ranks + rank};
      builder.AddDuplex(node, NodeId{boxes * ranks + box}, kFast);
      builder.AddDuplex(node, NodeId{boxes * ranks + boxes}, kSlow);
    }
  return MustBuild(std::move(builder));
}

// Two boxes of four fully joined ranks, each rank on a rail of its own.
inline Topology TwoBoxesOnRails() {
  Topology::Builder builder(8, 4);
  for (int32_t box = 0; box < 2; ++box)
    for (int32_t rank = 0; rank < 4; ++rank) {
      for (int32_t other = 0; other < rank; ++other)
        builder.AddDuplex(NodeId{box * 4 + rank}, NodeId{box * 4 + other},
                          {.bandwidth = 100'000'000'000, .alpha_ps = 500'000});
      builder.AddDuplex(NodeId{box * 4 + rank}, NodeId{8 + rank},
                        {.bandwidth = 25'000'000'000, .alpha_ps = 500'000});
    }
  return MustBuild(std::move(builder));
}

// Duplex cables at random, so that every node takes in what it gives out; strongly connected by a
// path through all nodes.
inline Topology RandomBalanced(uint64_t seed, int32_t most_ranks, int32_t max_switches) {
  Random random(seed);
  const auto ranks = static_cast<int32_t>(2 + random.Below(static_cast<uint64_t>(most_ranks - 1)));
  const auto switches = static_cast<int32_t>(random.Below(static_cast<uint64_t>(max_switches + 1)));
  const int32_t nodes = ranks + switches;
  Topology::Builder builder(ranks, switches);
  const auto spec = [&random] {
    return LinkSpec{.bandwidth = static_cast<int64_t>(1 + random.Below(6)) * 1'000'000,
                    .alpha_ps = 1000};
  };
  for (int32_t node = 1; node < nodes; ++node)
    builder.AddDuplex(NodeId{node},
                      NodeId{static_cast<int32_t>(random.Below(static_cast<uint64_t>(node)))},
                      spec());
  for (uint64_t extra = random.Below(static_cast<uint64_t>(nodes)); extra > 0; --extra) {
    const auto a = static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes)));
    const auto b = static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes)));
    if (a != b) builder.AddDuplex(NodeId{a}, NodeId{b}, spec());
  }
  return MustBuild(std::move(builder));
}

inline Topology RandomOneWay(uint64_t seed, int32_t most_ranks) {
  return test_support::RandomDigraph(seed, {.most_ranks = most_ranks});
}

// Every branch leads, link after link, from a node that the tree has reached to one that it has not;
// `on_link` is told each link. Which nodes are in the tree.
template <class OnLink>
std::vector<bool> WalkBranches(const Topology& topology, const forest::RoutedTree& tree,
                               const OnLink& on_link) {
  std::vector<bool> in(static_cast<size_t>(topology.num_nodes()), false);
  in[tree.root.index()] = true;
  for (const forest::RoutedBranch& branch : tree.branches) {
    EXPECT_TRUE(in[branch.tail.index()]);
    EXPECT_FALSE(in[branch.head.index()]);
    in[branch.head.index()] = true;
    NodeId at = branch.tail;
    for (const LinkId link : branch.links) {
      EXPECT_EQ(topology.tail(link), at);
      at = topology.head(link);
      on_link(link, branch);
    }
    EXPECT_EQ(at, branch.head);
  }
  return in;
}

inline Rational Efficiency(const Topology& topology, CollectiveKind kind, int64_t size_bytes) {
  const Collective collective = *Collective::Make(kind, topology.num_ranks());
  const Result<Schedule> made =
      RunSynthesizer(Algorithm("forest"), topology, collective, {.size_bytes = size_bytes});
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  if (!made) return 0;
  const VerifyReport report = Verify(topology, collective, *made);
  EXPECT_TRUE(report.verified()) << (report.violations.empty() ? ""
                                                               : report.violations.front().message);
  EXPECT_EQ(made->algorithm, "forest");
  return ComputeBounds(topology, collective)->Limit(size_bytes) /
         PredictedSeconds(topology, *made, size_bytes);
}

inline constexpr CollectiveKind kAll[] = {
    CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
    CollectiveKind::kBroadcast, CollectiveKind::kReduce};

}  // namespace tutti::forest_test

// Random correct schedules: every chunk of every shard goes along a random tree, each hop one or
// more steps after the one before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/sched/transform.h"
#include "tutti/topo/properties.h"
#include "unit/verify/hand_schedules.h"

namespace tutti::hand {

// A ring with chords, cables both ways. Homogeneous, or every cable with its own alpha and speed.
inline Topology RandomTopology(Random& random, bool homogeneous) {
  const auto n = static_cast<int32_t>(3 + random.Below(6));
  const auto draw = [&random] {
    return LinkSpec{static_cast<int64_t>(1 + random.Below(5)) * 1'000'000'000,
                    static_cast<int64_t>(random.Below(4)) * 300'000};
  };
  const LinkSpec common = draw();
  Topology::Builder builder(n);
  for (int32_t u = 0; u < n; ++u)
    builder.AddDuplex(NodeId{u}, NodeId{(u + 1) % n}, homogeneous ? common : draw());
  for (uint64_t chords = random.Below(5); chords > 0; --chords) {
    const auto u = static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)));
    const auto hop = static_cast<int32_t>(1 + random.Below(static_cast<uint64_t>(n) - 1));
    builder.AddDuplex(NodeId{u}, NodeId{(u + hop) % n}, homogeneous ? common : draw());
  }
  return MustBuild(std::move(builder));
}

inline void AppendRandomTree(const Topology& topology, ShardId shard, NodeId root, int32_t begin,
                             int32_t end, Random& random, Schedule& schedule) {
  std::vector<int32_t> step(static_cast<size_t>(topology.num_nodes()), -1);
  step[root.index()] = 0;
  for (int32_t left = topology.num_ranks() - 1; left > 0;) {
    const auto drawn = random.Below(static_cast<uint64_t>(topology.num_links()));
    const LinkId link{static_cast<int32_t>(drawn)};
    const int32_t from = step[topology.tail(link).index()];
    int32_t& to = step[topology.head(link).index()];
    if (from < 0 || to >= 0) continue;
    const auto at = from + static_cast<int32_t>(random.Below(2));
    to = at + 1;
    schedule.transfers.push_back({shard, link, begin, end, at});
    schedule.num_steps = std::max(schedule.num_steps, to);
    --left;
  }
}

inline Schedule RandomAllGather(const Topology& topology, Random& random) {
  const auto units = static_cast<int32_t>(1 + random.Below(12));
  Schedule schedule =
      Empty(topology, MustMake(CollectiveKind::kAllGather, topology.num_ranks()), 0, units);
  for (ShardId shard : schedule.collective.Shards()) {
    const auto cut = static_cast<int32_t>(random.Below(static_cast<uint64_t>(units)));
    if (cut > 0) AppendRandomTree(topology, shard, NodeId{shard.value}, 0, cut, random, schedule);
    AppendRandomTree(topology, shard, NodeId{shard.value}, cut, units, random, schedule);
  }
  SortBySteps(schedule);
  return schedule;
}

// All-gather, reduce-scatter or all-reduce, by seed.
inline Schedule RandomSchedule(const Topology& topology, Random& random) {
  const Schedule gather = RandomAllGather(topology, random);
  if (random.Below(3) == 0) return gather;
  const Schedule scatter = Reverse(gather, ReverseLinks(topology).value(), topology.Fingerprint());
  if (random.Below(2) == 0) return scatter;
  const Collective all_reduce = MustMake(CollectiveKind::kAllReduce, topology.num_ranks());
  Result<Schedule> both = Concatenate(scatter, gather, all_reduce);
  EXPECT_TRUE(both.has_value()) << both.error().message;
  return *std::move(both);
}

// A complete network of 4 or 8 ranks, and an all-reduce on it by exchange: in each round of a shard
// all ranks exchange their sums with a partner, or pass them on in circles, so that everyone sends
// what is overwritten at the same time. Rounds of different shards meet in any way.
inline Topology RandomComplete(Random& random, bool homogeneous) {
  const auto n = static_cast<int32_t>(random.Below(2) == 0 ? 4 : 8);
  const auto draw = [&random] {
    return LinkSpec{static_cast<int64_t>(1 + random.Below(5)) * 1'000'000'000,
                    static_cast<int64_t>(random.Below(4)) * 300'000};
  };
  const LinkSpec common = draw();
  Topology::Builder builder(n);
  for (int32_t u = 0; u < n; ++u)
    for (int32_t v = 0; v < n; ++v)
      if (u != v) builder.AddLink(NodeId{u}, NodeId{v}, homogeneous ? common : draw());
  return MustBuild(std::move(builder));
}

inline Schedule RandomExchange(const Topology& topology, Random& random) {
  const int32_t n = topology.num_ranks();
  Schedule schedule = Empty(topology, MustMake(CollectiveKind::kAllReduce, n), 0);
  for (ShardId shard : schedule.collective.Shards()) {
    auto step = static_cast<int32_t>(random.Below(3));
    const auto mask = static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)));
    const bool circles = random.Below(2) == 0;
    for (int32_t bit = 1; bit < n; bit *= 2, step += static_cast<int32_t>(1 + random.Below(2)))
      for (int32_t i = 0; i < n; ++i) {
        const int32_t u = i ^ mask;  // another order of transfers for every shard
        const int32_t v = circles ? (u + bit) % n : u ^ bit;
        schedule.transfers.push_back(
            {shard, FindLink(topology, u, v), 0, 1, step, TransferOp::kReduce});
        schedule.num_steps = std::max(schedule.num_steps, step + 1);
      }
  }
  SortBySteps(schedule);
  return schedule;
}

}  // namespace tutti::hand

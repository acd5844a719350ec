// Small schedules written by hand, that tests judge, break and simulate. They need no synthesizer
// and no expression parser, so that a fault there cannot hide one here.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/build.h"
#include "tutti/sched/schedule.h"

namespace tutti::hand {

using test_support::MustBuild;
using test_support::MustMake;

// Links u -> u + 1, and the other way too when `both`.
inline Topology Ring(int32_t n, bool both, LinkSpec spec = {}) {
  Topology::Builder builder(n);
  for (int32_t u = 0; u < n; ++u) {
    builder.AddLink(NodeId{u}, NodeId{(u + 1) % n}, spec);
    if (both) builder.AddLink(NodeId{(u + 1) % n}, NodeId{u}, spec);
  }
  return MustBuild(std::move(builder));
}

inline Topology Complete(int32_t n, LinkSpec spec = {}) {
  Topology::Builder builder(n);
  for (int32_t u = 0; u < n; ++u)
    for (int32_t v = 0; v < n; ++v)
      if (u != v) builder.AddLink(NodeId{u}, NodeId{v}, spec);
  return MustBuild(std::move(builder));
}

// n ranks around one switch.
inline Topology Star(int32_t n, LinkSpec spec = {}) {
  Topology::Builder builder(n, 1);
  for (int32_t u = 0; u < n; ++u) builder.AddDuplex(NodeId{u}, NodeId{n}, spec);
  return MustBuild(std::move(builder));
}

// The first link between two nodes; -1 where there is none.
inline LinkId FindLink(const Topology& topology, int32_t tail, int32_t head) {
  for (LinkId link : topology.OutLinks(NodeId{tail}))
    if (topology.head(link) == NodeId{head}) return link;
  return LinkId{-1};
}

inline Schedule Empty(const Topology& topology, const Collective& collective, int32_t num_steps,
                      int32_t units = 1) {
  Schedule schedule{collective, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  schedule.units_per_shard = units;
  schedule.num_steps = num_steps;
  schedule.topology_fingerprint = topology.Fingerprint();
  schedule.algorithm = "hand";
  return schedule;
}

inline int32_t Mod(int32_t a, int32_t n) { return ((a % n) + n) % n; }

// Ring all-gather: in step t rank u passes on shard u - t. With `both`, half of each shard goes
// the other way round.
inline Schedule RingAllGather(const Topology& topology, bool both) {
  const int32_t n = topology.num_ranks();
  Schedule schedule = Empty(topology, MustMake(CollectiveKind::kAllGather, n), n - 1, both ? 2 : 1);
  for (int32_t t = 0; t < n - 1; ++t)
    for (int32_t u = 0; u < n; ++u) {
      schedule.transfers.push_back(
          {ShardId{Mod(u - t, n)}, FindLink(topology, u, Mod(u + 1, n)), 0, 1, t});
      if (both)
        schedule.transfers.push_back(
            {ShardId{Mod(u + t, n)}, FindLink(topology, u, Mod(u - 1, n)), 1, 2, t});
    }
  return schedule;
}

// Ring reduce-scatter: in step t rank u passes on its partial sum of shard u - t - 1, which ends
// in rank (u - t - 1) after n - 1 steps.
inline void AppendRingReduceScatter(const Topology& topology, Schedule& schedule) {
  const int32_t n = topology.num_ranks();
  for (int32_t t = 0; t < n - 1; ++t)
    for (int32_t u = 0; u < n; ++u)
      schedule.transfers.push_back({ShardId{Mod(u - t - 1, n)},
                                    FindLink(topology, u, Mod(u + 1, n)), 0,
                                    schedule.units_per_shard, t, TransferOp::kReduce});
}

inline Schedule RingReduceScatter(const Topology& topology) {
  const int32_t n = topology.num_ranks();
  Schedule schedule = Empty(topology, MustMake(CollectiveKind::kReduceScatter, n), n - 1);
  AppendRingReduceScatter(topology, schedule);
  return schedule;
}

inline Schedule RingAllReduce(const Topology& topology) {
  const int32_t n = topology.num_ranks();
  Schedule schedule = Empty(topology, MustMake(CollectiveKind::kAllReduce, n), 2 * (n - 1));
  AppendRingReduceScatter(topology, schedule);
  for (int32_t t = 0; t < n - 1; ++t)
    for (int32_t u = 0; u < n; ++u)
      schedule.transfers.push_back(
          {ShardId{Mod(u - t, n)}, FindLink(topology, u, Mod(u + 1, n)), 0, 1, n - 1 + t});
  return schedule;
}

// Binomial tree on a complete network, rank 0 the root, the shard in two chunks one after the
// other: 1/3 and 2/3 of it.
inline Schedule BinomialBroadcast(const Topology& topology) {
  const int32_t n = topology.num_ranks();
  int32_t rounds = 0;
  while ((1 << rounds) < n) ++rounds;
  Schedule schedule = Empty(topology, MustMake(CollectiveKind::kBroadcast, n), rounds + 1, 3);
  for (int32_t chunk = 0; chunk < 2; ++chunk)
    for (int32_t k = 0; k < rounds; ++k)
      for (int32_t u = 0; u < (1 << k); ++u)
        if (u + (1 << k) < n)
          schedule.transfers.push_back(
              {ShardId{0}, FindLink(topology, u, u + (1 << k)), chunk, 1 + 2 * chunk, k + chunk});
  SortBySteps(schedule);
  return schedule;
}

// Every block goes to rank d over rank (s + d) % n where that is a third one, else directly.
inline Schedule RelayedAllToAll(const Topology& topology) {
  const int32_t n = topology.num_ranks();
  Schedule schedule = Empty(topology, MustMake(CollectiveKind::kAllToAll, n), 2);
  for (int32_t s = 0; s < n; ++s)
    for (int32_t d = 0; d < n; ++d) {
      if (s == d) continue;
      const int32_t via = (s + d) % n;
      const ShardId shard{s * n + d};
      if (via == s || via == d) {
        schedule.transfers.push_back({shard, FindLink(topology, s, d), 0, 1, (s + d) % 2});
      } else {
        schedule.transfers.push_back({shard, FindLink(topology, s, via), 0, 1, 0});
        schedule.transfers.push_back({shard, FindLink(topology, via, d), 0, 1, 1});
      }
    }
  SortBySteps(schedule);
  return schedule;
}

// The same steps one after the other as a timed schedule, each starting when the slowest message
// of the one before has arrived. One transfer a link and step.
inline Schedule Timed(const Topology& topology, const Schedule& steps, int64_t size_bytes,
                      LinkModel model) {
  Schedule timed = steps;
  timed.kind = ScheduleKind::kTimed;
  timed.size_bytes = size_bytes;
  timed.link_model = model;
  timed.num_steps = 0;
  int64_t start = 0, end = 0;
  int32_t step = 0;
  for (Transfer& transfer : timed.transfers) {
    if (transfer.step != step) start = end;
    step = std::exchange(transfer.step, 0);
    timed.start_ps.push_back(start);
    const Rational bytes = steps.collective.ShardBytes(transfer.shard, size_bytes) *
                           Rational(transfer.units(), steps.units_per_shard);
    end = std::max(end, start + topology.alpha_ps(transfer.link) +
                            BandwidthPs(bytes, topology.bandwidth(transfer.link)));
  }
  return timed;
}

}  // namespace tutti::hand

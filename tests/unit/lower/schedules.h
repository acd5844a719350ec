// Hand-made topologies and schedules, so that the tests of this room need no synthesizer.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "support/build.h"
#include "tutti/lower/mscclpp.h"
#include "tutti/sched/schedule.h"
#include "tutti/topo/topology.h"

namespace tutti::testing_lower {

using test_support::LinkOf;
using test_support::MustBuild;
using test_support::MustMake;

// Links r -> r + 1.
inline Topology UniRing(int32_t n) {
  Topology::Builder builder(n);
  for (int32_t r = 0; r < n; ++r) builder.AddLink(NodeId{r}, NodeId{(r + 1) % n}, {});
  return MustBuild(std::move(builder));
}

inline Topology Complete(int32_t n) {
  Topology::Builder builder(n);
  for (int32_t a = 0; a < n; ++a)
    for (int32_t b = 0; b < n; ++b)
      if (a != b) builder.AddLink(NodeId{a}, NodeId{b}, {});
  return MustBuild(std::move(builder));
}

// 0 - 1 - ... - (n - 1), both ways.
inline Topology Path(int32_t n) {
  Topology::Builder builder(n);
  for (int32_t r = 0; r + 1 < n; ++r) builder.AddDuplex(NodeId{r}, NodeId{r + 1}, {});
  return MustBuild(std::move(builder));
}

inline Schedule Empty(const Topology& topology, Collective collective, int32_t units = 1) {
  return {std::move(collective), ScheduleKind::kStep,    units,     0, {}, {}, 0,
          LinkModel::kHeld,      topology.Fingerprint(), "by-hand", 0};
}

inline void Add(Schedule& schedule, int32_t step, int32_t shard, LinkId link,
                TransferOp op = TransferOp::kCopy) {
  schedule.transfers.push_back({ShardId{shard}, link, 0, schedule.units_per_shard, step, op});
  if (step >= schedule.num_steps) schedule.num_steps = step + 1;
}

// One way round; `units` only cuts the shards finer.
inline Schedule RingAllGather(const Topology& ring, int32_t units = 1) {
  const int32_t n = ring.num_ranks();
  Schedule schedule = Empty(ring, MustMake(CollectiveKind::kAllGather, n), units);
  for (int32_t t = 0; t + 1 < n; ++t)
    for (int32_t r = 0; r < n; ++r) Add(schedule, t, (r - t + n) % n, LinkOf(ring, r, (r + 1) % n));
  return schedule;
}

// Shard v starts at v + 1 and ends, reduced, at v.
inline Schedule RingReduceScatter(const Topology& ring) {
  const int32_t n = ring.num_ranks();
  Schedule schedule = Empty(ring, MustMake(CollectiveKind::kReduceScatter, n));
  for (int32_t t = 0; t + 1 < n; ++t)
    for (int32_t r = 0; r < n; ++r)
      Add(schedule, t, (r - t - 1 + 2 * n) % n, LinkOf(ring, r, (r + 1) % n), TransferOp::kReduce);
  return schedule;
}

inline Schedule RingAllReduce(const Topology& ring) {
  Schedule schedule = RingReduceScatter(ring);
  schedule.collective = MustMake(CollectiveKind::kAllReduce, ring.num_ranks());
  const int32_t half = schedule.num_steps;
  for (Transfer transfer : RingAllGather(ring).transfers) {
    transfer.step += half;
    schedule.transfers.push_back(transfer);
  }
  schedule.num_steps = 2 * half;
  return schedule;
}

inline Schedule DirectAllToAll(const Topology& complete, const Collective& collective) {
  const int32_t n = complete.num_ranks();
  Schedule schedule = Empty(complete, collective);
  for (int32_t s = 0; s < n; ++s)
    for (int32_t d = 0; d < n; ++d)
      if (s != d) Add(schedule, 0, s * n + d, LinkOf(complete, s, d));
  return schedule;
}

// One a line; "error: ..." of what cannot be read.
inline std::string MscclppFaults(const std::string& json) {
  const Result<MscclppVerdict> verdict = CheckMscclpp(json);
  if (!verdict) return "error: " + verdict.error().message;
  std::string text;
  for (const PlanFault& fault : verdict->faults) text += fault.message + "\n";
  return text;
}

}  // namespace tutti::testing_lower

// Small networks and schedules for the tests of this room.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/sched/schedule.h"

namespace tutti {

template <class T>
T Must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message;
    throw std::runtime_error(result.error().message);
  }
  return std::move(*result);
}

inline NodeId Node(int32_t value) { return NodeId{value}; }

// 0 -> 1 -> ... -> n-1 -> 0, in one direction or in both.
inline Topology Ring(int32_t n, bool duplex, LinkSpec spec = {}) {
  Topology::Builder builder(n);
  for (int32_t u = 0; u < n; ++u) {
    builder.AddLink(Node(u), Node((u + 1) % n), spec);
    if (duplex) builder.AddLink(Node((u + 1) % n), Node(u), spec);
  }
  builder.SetName("ring");
  return Must(std::move(builder).Build());
}

// Figure 1 of [direct-connect]: ranks 0, 1 on one side, 2, 3 on the other, all cables between.
inline Topology K22() {
  Topology::Builder builder(4);
  for (int32_t a : {0, 1})
    for (int32_t b : {2, 3}) builder.AddDuplex(Node(a), Node(b), {});
  return Must(std::move(builder).Build());
}

inline LinkId LinkBetween(const Topology& topology, int32_t tail, int32_t head) {
  for (LinkId link : topology.OutLinks(Node(tail)))
    if (topology.head(link) == Node(head)) return link;
  ADD_FAILURE() << "no link " << tail << " -> " << head;
  return LinkId{0};
}

inline Schedule EmptySchedule(const Topology& topology, CollectiveKind kind) {
  Schedule schedule{Must(Collective::Make(kind, topology.num_ranks()))};
  schedule.topology_fingerprint = topology.Fingerprint();
  schedule.algorithm = "by-hand";
  return schedule;
}

// N - 1 steps; in step t rank u sends shard u - t over its link to u + 1.
inline Schedule RingAllGather(const Topology& topology) {
  Schedule schedule = EmptySchedule(topology, CollectiveKind::kAllGather);
  const int32_t n = topology.num_ranks();
  schedule.num_steps = n - 1;
  for (int32_t t = 0; t < n - 1; ++t)
    for (int32_t u = 0; u < n; ++u)
      schedule.transfers.push_back({ShardId{(u - t + n) % n}, LinkBetween(topology, u, (u + 1) % n),
                                    0, 1, t, TransferOp::kCopy});
  return schedule;
}

// Figure 1: each rank sends its shard to both neighbours, which send a half each to the rank on
// its own side.
inline Schedule K22AllGather(const Topology& topology) {
  Schedule schedule = EmptySchedule(topology, CollectiveKind::kAllGather);
  schedule.units_per_shard = 2;
  schedule.num_steps = 2;
  const auto send = [&](int32_t shard, int32_t from, int32_t to, int32_t begin, int32_t end,
                        int32_t step) {
    schedule.transfers.push_back(
        {ShardId{shard}, LinkBetween(topology, from, to), begin, end, step, TransferOp::kCopy});
  };
  for (int32_t u = 0; u < 4; ++u)
    for (int32_t across = u < 2 ? 2 : 0, k = 0; k < 2; ++k) send(u, u, across + k, 0, 2, 0);
  for (int32_t u = 0; u < 4; ++u)
    for (int32_t across = u < 2 ? 2 : 0, k = 0; k < 2; ++k) send(u, across + k, u ^ 1, k, k + 1, 1);
  return schedule;
}

// A strongly connected network of a few ranks and switches, with parallel links and mixed specs.
inline Topology RandomTopology(Random& random) {
  const auto ranks = static_cast<int32_t>(2 + random.Below(6));
  const auto switches = static_cast<int32_t>(random.Below(3));
  const int32_t n = ranks + switches;
  Topology::Builder builder(ranks, switches);
  const auto spec = [&] {
    return LinkSpec{static_cast<int64_t>(1 + random.Below(3)) * 10'000'000'000,
                    static_cast<int64_t>(random.Below(3)) * 250'000};
  };
  for (int32_t u = 0; u < n; ++u) builder.AddDuplex(Node(u), Node((u + 1) % n), spec());
  for (uint64_t extra = random.Below(10); extra > 0; --extra) {
    const auto tail = static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)));
    const auto hop = static_cast<int32_t>(1 + random.Below(static_cast<uint64_t>(n) - 1));
    builder.AddDuplex(Node(tail), Node((tail + hop) % n), spec());
  }
  return Must(std::move(builder).Build());
}

inline Collective RandomCollective(Random& random, int32_t num_ranks) {
  const auto kind = static_cast<CollectiveKind>(random.Below(9));
  Collective::Options options;
  options.root = static_cast<int32_t>(random.Below(static_cast<uint64_t>(num_ranks)));
  if (kind == CollectiveKind::kAllReduce) options.all_reduce_shards = random.Below(2) == 0 ? 1 : 0;
  if (kind == CollectiveKind::kAllToAllV) {
    for (int32_t i = 0; i < num_ranks * num_ranks; ++i)
      options.demand.push_back(static_cast<int64_t>(random.Below(1000)) + (i == 1 ? 1 : 0));
    if (random.Below(2) == 0)
      options.weight_of_size = 1 + static_cast<int64_t>(random.Below(1u << 20));
  }
  return Must(Collective::Make(kind, num_ranks, options));
}

// Structurally fine (S1 .. S4) and meaningless: what files must carry.
inline Schedule RandomSchedule(Random& random, const Topology& topology, size_t max_transfers) {
  Schedule schedule{RandomCollective(random, topology.num_ranks())};
  const bool timed = random.Below(3) == 0;
  schedule.topology_fingerprint = topology.Fingerprint();
  schedule.algorithm = random.Below(2) == 0 ? "" : "made \"up\"\n\xc3\xa9";
  schedule.seed = random.Next();
  schedule.units_per_shard =
      static_cast<int32_t>(1 + random.Below(uint64_t{1} << random.Below(31)));
  if (timed) {
    schedule.kind = ScheduleKind::kTimed;
    schedule.size_bytes = static_cast<int64_t>(1 + random.Below(1u << 30));
    schedule.link_model = random.Below(2) == 0 ? LinkModel::kHeld : LinkModel::kPipelined;
  } else {
    schedule.num_steps = static_cast<int32_t>(random.Below(uint64_t{1} << random.Below(12)));
  }
  size_t count = random.Below(max_transfers + 1);
  if (!timed && schedule.num_steps == 0) count = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto units = static_cast<uint64_t>(schedule.units_per_shard);
    const uint64_t begin = random.Below(units);
    Transfer transfer;
    transfer.shard.value =
        static_cast<int32_t>(random.Below(static_cast<uint64_t>(schedule.collective.num_shards())));
    transfer.link.value =
        static_cast<int32_t>(random.Below(static_cast<uint64_t>(topology.num_links())));
    transfer.begin = static_cast<int32_t>(begin);
    transfer.end = static_cast<int32_t>(begin + 1 + random.Below(units - begin));
    if (!timed)
      transfer.step = static_cast<int32_t>(random.Below(static_cast<uint64_t>(schedule.num_steps)));
    transfer.op = random.Below(2) == 0 ? TransferOp::kCopy : TransferOp::kReduce;
    schedule.transfers.push_back(transfer);
    if (timed)
      schedule.start_ps.push_back(static_cast<int64_t>(random.Below(uint64_t{1} << (1 + i % 62))));
  }
  std::sort(schedule.start_ps.begin(), schedule.start_ps.end());
  if (!timed) SortBySteps(schedule);
  return schedule;
}

}  // namespace tutti

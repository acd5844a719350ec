// Large schedules for benchmarks, made without a synthesizer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tutti/sched/schedule.h"

namespace tutti::bench {

// An all-gather that gives every shard to every rank along all shortest paths: a rank at distance t
// takes an equal part of the shard from each neighbour that is nearer.
inline Schedule ShortestPathAllGather(const Topology& topology, int32_t units) {
  const int32_t n = topology.num_ranks();
  Schedule schedule{
      *Collective::Make(CollectiveKind::kAllGather, n), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  schedule.units_per_shard = units;
  schedule.topology_fingerprint = topology.Fingerprint();
  std::vector<int32_t> distance(static_cast<size_t>(n));
  std::vector<NodeId> queue;
  for (int32_t root = 0; root < n; ++root) {
    std::fill(distance.begin(), distance.end(), -1);
    distance[static_cast<size_t>(root)] = 0;
    queue = {NodeId{root}};
    for (size_t next = 0; next < queue.size(); ++next)
      for (LinkId link : topology.OutLinks(queue[next]))
        if (int32_t& d = distance[topology.head(link).index()]; d < 0) {
          d = distance[queue[next].index()] + 1;
          queue.push_back(topology.head(link));
        }
    for (NodeId node : topology.Ranks()) {
      const int32_t d = distance[node.index()];
      int32_t nearer = 0, taken = 0;
      for (LinkId link : topology.InLinks(node))
        nearer += distance[topology.tail(link).index()] == d - 1 ? 1 : 0;
      for (LinkId link : topology.InLinks(node)) {
        if (distance[topology.tail(link).index()] != d - 1) continue;
        schedule.transfers.push_back(
            {ShardId{root}, link, units / nearer * taken, units / nearer * (taken + 1), d - 1});
        ++taken;
      }
      schedule.num_steps = std::max(schedule.num_steps, d);
    }
  }
  SortBySteps(schedule);
  return schedule;
}

// The same schedule backwards: a reduce-scatter.
inline Schedule Backwards(const Topology& topology, Schedule schedule) {
  schedule.collective = schedule.collective.Reversed();
  for (Transfer& transfer : schedule.transfers) {
    transfer.step = schedule.num_steps - 1 - transfer.step;
    transfer.op = TransferOp::kReduce;
    for (LinkId link : topology.OutLinks(topology.head(transfer.link)))
      if (topology.head(link) == topology.tail(transfer.link)) {
        transfer.link = link;
        break;
      }
  }
  SortBySteps(schedule);
  return schedule;
}

inline Topology Hypercube(int32_t dims) {
  Topology::Builder builder(1 << dims);
  for (int32_t u = 0; u < (1 << dims); ++u)
    for (int32_t k = 0; k < dims; ++k) builder.AddLink(NodeId{u}, NodeId{u ^ (1 << k)}, {});
  return *std::move(builder).Build();
}

inline Topology Torus(int32_t side) {
  Topology::Builder builder(side * side);
  for (int32_t x = 0; x < side; ++x)
    for (int32_t y = 0; y < side; ++y) {
      builder.AddDuplex(NodeId{x * side + y}, NodeId{(x + 1) % side * side + y}, {});
      builder.AddDuplex(NodeId{x * side + y}, NodeId{x * side + (y + 1) % side}, {});
    }
  return *std::move(builder).Build();
}

}  // namespace tutti::bench

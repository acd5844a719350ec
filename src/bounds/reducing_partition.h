// The limit of all-reduce that a partition proves where switches reduce.
//
// Model       Every switch that reduces belongs to a part, alone or with ranks; k parts hold ranks.
//             Contract each part to one node. The first node that knows the whole of a byte's sum
//             has been told by messages that join all k (k - 1 of them, or k where it holds no
//             rank), and each part with ranks that did not know it then is told later: 2 (k - 1)
//             messages at least enter parts, whatever nodes without ranks add and keep. Switches that
//             only forward count as in partition_bound.h, whose proof this is otherwise.
// Method      Two partitions, of which both limits hold: the tightest one with these switches as
//             ranks, and the tightest one of the ranks, each switch with the part that it has most
//             bandwidth to.
// Example     Four boxes of eight ranks, each on a switch that reduces, a NIC of 50 GB/s a rank on
//             rails that do not: boxes with their switches apart, 6 M / (32 * 50 GB/s).
#pragma once

#include <optional>

#include "partition_bound.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct ReducingPartition {
  int64_t num_parts = 0;      // with ranks, at least 2
  WideCapacity capacity = 0;  // into all parts, in the unit of `network`
};

// `topology` has switches that reduce, `network` is its own. nullopt: no partition has two parts
// with ranks.
std::optional<ReducingPartition> TightestReducingPartition(const Topology& topology,
                                                           const CutNetwork& network);

}  // namespace tutti

// What a schedule moves between ranks, with the switches taken out: switches hold and forward, they
// run no instructions. A chain rank -> switch -> ... -> rank becomes one move from the first rank
// to the last, which reads when it leaves the first and writes when it arrives at the last. What a
// switch sends on to several ranks becomes a move to each.
//
// Complexity  O(transfers log transfers); without switches O(transfers).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti::lower {

struct Move {
  int32_t connection = 0;
  ShardId shard;
  int32_t begin = 0, end = 0;  // units of the shard
  TransferOp op = TransferOp::kCopy;
  int32_t step = 0;               // in which it leaves; of timed schedules the number of its start
  int64_t start = 0, finish = 0;  // steps, or picoseconds of a timed schedule
};

struct Moves {
  // (sender, receiver): the links between ranks in their order, then each pair of ranks between
  // which switches forward.
  std::vector<std::pair<NodeId, NodeId>> connections;
  std::vector<Move> all;  // between ranks without a switch: in the order of the transfers
};

// Shards without bytes are left out. kInvalidArgument: a switch sends what it does not hold, or
// something is to be reduced in one; with the step.
Result<Moves> MovesOf(const Topology& topology, const Schedule& schedule);

}  // namespace tutti::lower

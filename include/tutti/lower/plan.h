// Plan: a schedule as instructions for each rank, what an executor runs.
//
// Model       Each rank has three buffers (input, output, scratch) made of *slots*; a slot holds
//             one shard. A rank runs several *streams* (thread blocks) at once, each a list of
//             instructions in order. A stream sends to at most one peer and receives from at most
//             one, over one channel. A connection (sender, receiver, channel) is first in first
//             out; exactly one stream sends on it and one receives, and both sides' counts agree.
//             An instruction starts when its predecessor in the stream and its dependencies are
//             done. A send is done when its source may be overwritten.
// Addresses   Offsets are in units from the start of the buffer: slot * units_per_shard + unit. A
//             range may run over several slots. An executor with E elements a slot puts unit u of
//             slot s at element s * E + floor(u * E / units_per_shard): any E works. Where slots
//             have different weights (all-to-all-v) slot s has E_s elements and starts after those
//             before.
// Buffers     Input and output slots are those of tutti/coll/slots.h.
//             Scratch slots are what the lowering needs for relayed blocks and partial sums.
// In place    input and output may be the same memory as nccl-tests lays it out (all-gather: input
//             is output slot r; reduce-scatter: output is input slot r; all-reduce, broadcast,
//             reduce: the same; gather and scatter: the root's own block). A plan is correct both
//             ways: hazards between an input slot and the output slot it aliases are dependencies.
// Invariants  P1  peers, streams, offsets in range; dependencies point to other streams of the
//                 rank.
//             P2  dependencies, program order and connections have no cycle (with `fifo_depth`
//                 messages a connection; CheckPlan proves it).
// Reference   docs/formats/plan.md; [direct-connect] 7 "Schedule Compilation".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/coll/collective.h"
#include "tutti/coll/slots.h"

namespace tutti {

enum class Buffer : uint8_t { kInput, kOutput, kScratch };

enum class OpCode : uint8_t {
  kSend,        // src -> peer
  kRecv,        // peer -> dst
  kRecvReduce,  // dst = src op what the peer sent
  kCopy,        // dst = src
};

struct Operand {
  Buffer buffer = Buffer::kInput;
  int64_t offset = 0;  // units
  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Dependency {
  int32_t stream = 0;       // of the same rank
  int32_t instruction = 0;  // index in that stream
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct Instruction {
  OpCode op = OpCode::kCopy;
  Operand src, dst;
  int64_t count = 0;  // units
  std::vector<Dependency> after;
  int32_t step = 0;  // of the schedule, for traces
};

struct Stream {
  int32_t send_peer = -1, recv_peer = -1;  // rank or -1
  int32_t channel = 0;
  std::vector<Instruction> instructions;
};

struct RankPlan {
  int32_t input_slots = 0, output_slots = 0, scratch_slots = 0;
  // Weights of the slots, empty where all are 1 (see Collective::weight).
  std::vector<int64_t> input_weights, output_weights, scratch_weights;
  // The shard that each scratch slot holds, as the slots of input and output do by their place: it
  // says how many elements the slot has where shards differ. Empty: unknown, so that the plan runs
  // only where all shards have equally many.
  std::vector<int32_t> scratch_shards;
  std::vector<Stream> streams;
};

struct Plan {
  Collective collective;
  int32_t units_per_shard = 1;
  int32_t num_channels = 1;
  std::string algorithm;
  std::vector<RankPlan> ranks;
};

// Canonical text, one instruction a line: equal plans print equal bytes.
std::string PlanToText(const Plan& plan);

}  // namespace tutti

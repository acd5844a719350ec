// BlockProgram: a judged MSCCL XML file or MSCCL++ plan as the few actions that it consists of, so
// that an executor needs to know neither format.
//
// Model       A rank has input, output and scratch, made of *cells* of equal size, and thread blocks
//             that run at once, each a list of actions in order. Blocks act together through
//             *counters*: what a block did before it adds to one is seen by whoever waits for that.
//             Queues, signals, semaphores, barriers, dependencies and the flags of packets are all
//             counters; the slots of a queue are cells of the receiver's scratch.
// Invariants  B1  ranks, buffers, cells and counters of every action exist.
//             B2  the file was proven correct: no two accesses to a cell, one of them a write, are
//                 without order; every run ends; the results are the collective's.
// Reference   docs/formats/msccl-xml.md and mscclpp.md, "Running a file"; docs/adr/0037.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/coll/collective.h"
#include "tutti/lower/plan.h"

namespace tutti {

enum class BlockAction : uint8_t {
  kPost,    // adds 1 to each of `count` counters from `counter` on
  kTake,    // waits until the counter is above 0 and takes 1
  kReach,   // waits until each of `count` counters has reached `value`
  kMeet,    // waits until `count` blocks are here, itself among them; takes the next counter too
  kReduce,  // every target = the reduction of all sources; of one source: a copy
};

// `cells` of them, as the step says.
struct BlockRange {
  int32_t rank = 0;
  Buffer buffer = Buffer::kInput;
  int64_t first = 0;
};

struct BlockStep {
  BlockAction action = BlockAction::kReduce;
  int32_t counter = 0, count = 1, value = 0;
  int32_t first_range = 0, num_sources = 0, num_targets = 0;  // sources, then targets
  int64_t cells = 0;
  int32_t origin = 0;  // number of the step or operation in the file
};

struct Block {
  int32_t rank = 0, number = 0;  // as the file counts
  std::vector<BlockStep> steps = {};
};

struct BlockProgram {
  Collective collective;
  std::string name = {};
  bool in_place = false;
  // In place a broadcast has one buffer at every rank, and not only at the root.
  bool one_buffer_everywhere = false;
  int64_t cells_per_slot = 1;               // of input and output; tutti/coll/slots.h
  std::vector<int64_t> scratch_cells = {};  // of each rank
  std::vector<int32_t> counters = {};       // what they start with, in every run
  std::vector<BlockRange> ranges = {};
  std::vector<Block> blocks = {};  // in order of rank
};

}  // namespace tutti

// Machine: runs per-rank instruction streams symbolically and says what is wrong with them. Judges
// plans (check_plan.cc) and MSCCL XML (msccl_check.cc); shares no code with the lowering.
//
// Model       Memory is made of *cells*. A cell holds a value: a position (which cell of which
//             shard) and the set of ranks whose contributions it unites. An action may receive,
//             read, reduce, write and send, in this order. A connection (sender, receiver, channel)
//             holds at most `fifo_depth` messages; a send blocks when it is full, a receive when it
//             is empty. With `piecewise` an action moves its cells one by one, each a message of
//             its own (the worst that a reader of MSCCL XML may do), otherwise all as one.
// Faults      Format (peers, ranges, dependencies, who is at the ends of a connection, unequal
//             counts); then, in a run: deadlock, reads of unwritten cells, contributions that count
//             twice, results that are missing or incomplete, and races: two accesses of a cell, one
//             of them a write, that no program order, dependency or message puts in order.
// Why one run is enough: the streams are a network of processes with blocking reads and writes, so
//             without races every order of execution gives the same values and the same end.
// Complexity  Time O(cells touched + actions * streams of a rank); memory 24 bytes a cell and 4 an
//             action and stream of its rank.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/lower/lowering.h"

namespace tutti::lower {

struct Action {
  bool receives = false, sends = false;
  bool reads = false;      // src; with `receives`: reduced with what is received
  bool writes = false;     // dst
  bool reads_dst = false;  // dst = src op dst, without a message
  Operand src, dst;        // in cells
  int64_t count = 0;       // cells; 0 for an action that only waits
  int64_t units = 0;       // the same in units: both ends of a message must agree on them
  std::vector<Dependency> after;
};

struct ActionStream {
  int32_t send_peer = -1, recv_peer = -1, channel = 0;
  std::vector<Action> actions;
};

struct MachineRank {
  std::array<int64_t, 3> cells{};               // of input, output, scratch
  std::array<std::vector<int64_t>, 3> weights;  // of their slots; empty: all 1
  std::vector<ActionStream> streams;
  std::vector<int32_t> scratch_shards = {};  // the only shard each slot may hold; empty: any
};

// How faults name things: ranks, streams and instructions, or gpus, tbs and steps.
struct Vocabulary {
  std::string_view rank = "rank", stream = "stream", action = "instruction";
  std::array<std::string_view, 3> buffers{"input", "output", "scratch"};
  std::string_view unit = "unit";
};

struct Machine {
  Collective collective;
  int64_t cells_per_slot = 1;
  // Where each cell of a slot starts, in units, and where the last one ends; for faults. Empty: a
  // cell is a unit.
  std::vector<int64_t> cell_starts;
  bool in_place = false;
  bool piecewise = false;
  // Slots need not be multiples of cells: a value may only lie where its unit lies (plan.h).
  bool keeps_phase = true;
  int32_t fifo_depth = 2;
  Vocabulary words;
  std::vector<MachineRank> ranks;

  int64_t UnitOf(int64_t cell) const {
    if (cell_starts.empty()) return cell;
    return cell / cells_per_slot * cell_starts.back() +
           cell_starts[static_cast<size_t>(cell % cells_per_slot)];
  }
};

// At most kMaxFaults, in a fixed order.
inline constexpr size_t kMaxFaults = 20;
std::vector<PlanFault> RunMachine(const Machine& machine);

}  // namespace tutti::lower

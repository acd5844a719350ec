// All-to-all-v of nodes whose ranks share memory. Inside a node no message is sent: a rank writes
// its blocks for the node into its window (node_memory.h), and after one barrier everybody takes
// what is its own. Between nodes ranks send messages of many blocks (shared_plan.h) that are
// received into windows, from where everybody takes its blocks.
//
// Model       Sizes do not travel. Every rank publishes the sizes that it receives, which it knows;
//             who receives a message works out from them how long it is and where each block in it
//             begins, and writes that into a table for the readers. All that a block costs its
//             ranks is one copy on its own, out of the message: into messages blocks go in runs, or
//             are sent from where the program has them.
//             A call: publish, barrier; where ranks of a node put messages together, do so,
//             barrier; wave by wave (shared_plan.h): post the next wave, wait for this one,
//             barrier, take its blocks. What a window holds twice is written by every second call,
//             so that one barrier per call suffices.
//             Blocks longer than kLongestShared go straight from rank to rank, posted first, waited
//             for last.
// Units       Window counts messages in flight each way between nodes (0: 32) [block_count].
// Complexity  Of P ranks, Q on the node, a rank copies P blocks out and about P / Q runs in, reads
//             and writes 6 P bytes of tables (10 P with blocks from 256 bytes). Memory: of the
//             window's pages those that are written: at most four times what the rank's blocks
//             take, kept with the communicator.
// Errors      An MPI error code.
#pragma once

#include <cstdint>
#include <vector>

#include "block_exchange.h"
#include "hierarchy/node_memory.h"
#include "hierarchy/shared_plan.h"
#include "trace.h"

namespace tutti::mpi {

// What stays from call to call. `calls` counts on the same on all ranks of a node.
struct SharedScratch {
  uint64_t calls = 0;
  std::vector<MPI_Request> receives, sends, large;
};

int SharedExchange(const BlockExchange& exchange, const SharedPlan& plan, int window,
                   NodeMemory& memory, SharedScratch& scratch, Trace* trace);

}  // namespace tutti::mpi

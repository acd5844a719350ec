// All-to-all-v where each block goes straight from its source to its destination: linear, pairwise,
// exclusive-or, spread-out and scattered.
//
// Model       A side is either bytes or elements of a datatype of the program, which then goes to
//             the MPI library as it is: these algorithms never pack. Blocks of zero bytes send
//             nothing: both ends know.
//               linear      every request at once, in ascending order of ranks
//               spread-out  every request at once, in round-robin order: step k sends to rank + k
//               scattered   spread-out in batches of `block_count` requests each way
//               pairwise    step k: send to rank + k, receive from rank - k, then wait
//               xor         step k: exchange with rank ^ k, then wait; k up to the next power of
//                           two: ranks without a partner sit out
// Complexity  P - 1 messages per rank; O(P) requests in flight (scattered: block_count; pairwise,
//             xor: 1).
// Errors      An MPI error code.
// Reference   [tuna] section II (d).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "block_exchange.h"
#include "trace.h"
#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi {

// The exchange, and the datatypes of the sides that are not bytes. Offsets and bytes of `blocks`
// are right for both kinds of side (a typed side's bytes are what its elements have without holes).
struct DirectExchange {
  BlockExchange blocks;
  const int* send_counts = nullptr;  // elements of send_type; null: the side is bytes
  MPI_Datatype send_type = MPI_BYTE;
  const int* receive_counts = nullptr;
  MPI_Datatype receive_type = MPI_BYTE;
  bool one_count = false;  // the counts are those of every block: arrays of one
};

bool IsDirect(alltoallv::Method method);

// A block_count of 0 stands for the default; MPI_ERR_ARG where `algorithm.method` is not direct.
int RunDirect(const DirectExchange& exchange, const alltoallv::Algorithm& algorithm, Trace* trace);

// The messages of a direct algorithm in order, and after how many it waits; -1: none this step.
struct DirectStep {
  int send_to;
  int receive_from;
};
std::vector<DirectStep> StepsOf(const alltoallv::Algorithm& algorithm, int rank, int size,
                                int* batch);

int LinearExchange(const DirectExchange& exchange, Trace* trace);
int SpreadOutExchange(const DirectExchange& exchange, Trace* trace);
int ScatteredExchange(const DirectExchange& exchange, int block_count, Trace* trace);
int PairwiseExchange(const DirectExchange& exchange, Trace* trace);
int XorExchange(const DirectExchange& exchange, Trace* trace);

}  // namespace tutti::mpi

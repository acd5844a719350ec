// An exchange of bytes by the algorithm of that name, for callers that have turned datatypes,
// counts and displacements into bytes (alltoallv.cc, sweeps).
//
// Model       `algorithm.method` is neither kAuto nor kMpi: those are the callers' (choice/, PMPI).
// Errors      An MPI error code; MPI_ERR_NO_MEM before any message was sent; MPI_ERR_ARG for what
//             is not run here.
// Threads     As for collectives.
#pragma once

#include "block_exchange.h"
#include "communicator_state.h"
#include "trace.h"
#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi {

// Whether RunExchange has it.
bool CanRunExchange(alltoallv::Method method);

int RunExchange(CommunicatorState& state, const BlockExchange& exchange,
                const alltoallv::Algorithm& algorithm, Trace* trace);

}  // namespace tutti::mpi

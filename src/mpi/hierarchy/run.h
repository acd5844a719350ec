// The hierarchical algorithms on a communicator whose groups are looked up once and kept with it,
// as is the memory that ranks of a node share. Where they cannot share, coalesced serves what was
// to go through it.
//
// Errors      An MPI error code.
// Threads     As for collectives.
#pragma once

#include "block_exchange.h"
#include "communicator_state.h"
#include "hierarchy/groups.h"
#include "trace.h"
#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi {

// kCoalesced, kStaggered, kMultilevel, kShared, kSharedCoalesced.
bool IsHierarchical(alltoallv::Method method);

// Serves the ranks of state.duplicate(); lives as long as the state. Collective at the first call.
int GroupsOf(CommunicatorState& state, const Groups** groups);

int RunHierarchical(CommunicatorState& state, const BlockExchange& exchange,
                    const alltoallv::Algorithm& algorithm, Trace* trace);

}  // namespace tutti::mpi

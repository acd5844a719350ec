// What: the hierarchical algorithms on a communicator whose groups are looked up once and kept with
// it.
// Errors: an MPI error code. Threads: as for collectives.
#pragma once

#include "block_exchange.h"
#include "communicator_state.h"
#include "hierarchy/groups.h"
#include "trace.h"
#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi {

// kCoalesced, kStaggered, kMultilevel.
bool IsHierarchical(alltoallv::Method method);

// Of the ranks of state.duplicate(); lives as long as the state. Collective at the first call.
int GroupsOf(CommunicatorState& state, const Groups** groups);

int RunHierarchical(CommunicatorState& state, const BlockExchange& exchange,
                    const alltoallv::Algorithm& algorithm, Trace* trace);

}  // namespace tutti::mpi

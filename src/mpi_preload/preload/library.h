// Which MPI a process runs with, and the engine for it.
//
// Threads     Any.
#pragma once

#include "interface.h"

namespace tutti::mpi::preload {

// The engine; null where this library is disabled: the MPI is not the one it was built for, or
// the engine cannot be loaded. The first call decides, once, and says on rank 0's standard error
// why it is disabled; so it is made after MPI_Init wherever that passes through us.
const Engine* FindEngine();

// The call as if this library were not there.
int NextAlltoallv(const AlltoallvCall& call);
int NextAlltoall(const AlltoallCall& call);
int NextCollective(const CollectiveCall& call);

// Notes a call that is passed on, for the report.
inline void CountPassedOn(PassedOn call) {
  if (const Engine* engine = FindEngine()) engine->count_passed_on(call);
}

}  // namespace tutti::mpi::preload

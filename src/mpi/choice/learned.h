// What: the memory file as the processes of a program see it: read once a process, told by one rank
// to the others of a communicator, and given what was measured when MPI is finalized.
// Errors: MPI error codes; what is wrong with the file is one line on standard error.
// Threads: any; a lock.
#pragma once

#include <mpi.h>

#include "tutti/alltoallv/memory.h"

namespace tutti::mpi {

// What rank 0 of `communicator` remembers. Collective.
int ShareMemory(MPI_Comm communicator, int rank, alltoallv::Memory* memory);

// Whether rank 0 of `communicator` remembers anything of this MPI. Collective.
int SomeoneRemembers(MPI_Comm communicator, int rank, bool* remembers);

// To be written by rank 0 of the program at its end.
void Learn(const alltoallv::Situation& situation, const alltoallv::Measured& measured);

}  // namespace tutti::mpi

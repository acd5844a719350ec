// The tuning database as the processes of a program see it: read once per process, told by one rank
// to the others of a communicator, and given what was measured when MPI is finalized.
//
// Errors      MPI error codes; what is wrong with the file is one line on standard error.
// Threads     Any; a lock.
#pragma once

#include <mpi.h>

#include "tutti/tune/tuning_database.h"

namespace tutti::mpi {

// What rank 0 of `communicator` remembers. Collective.
int ShareTuningDatabase(MPI_Comm communicator, int rank, tune::TuningDatabase* database);

// Whether rank 0 of `communicator` remembers anything of this MPI. Collective.
int HasTuningData(MPI_Comm communicator, int rank, bool* has_data);

// Whether this process remembers anything. Local.
bool RemembersTuningData();

// To be written by rank 0 of the program at its end.
void Learn(const tune::Situation& situation, const tune::Measured& measured);

}  // namespace tutti::mpi

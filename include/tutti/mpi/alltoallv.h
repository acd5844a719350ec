// All-to-all and all-to-all-v of an MPI program by an algorithm of its choice, with the arguments
// of MPI_Alltoallv and MPI_Alltoall plus the algorithm. Works on any intracommunicator, any
// datatype, MPI_IN_PLACE, counts of zero and displacements in any order; intercommunicators go to
// the native algorithm.
//
// Complexity  [tuna] section III: TuNA of radix r takes at most ceil(log_r P) (r - 1) rounds.
// Errors      An MPI error code; errors of the MPI library reach the error handler of the program's
//             communicator, and so does MPI_ERR_NO_MEM: how much a rank needs for blocks on their
//             way depends on what others send, so it cannot leave the exchange alone. (The drop-in
//             library agrees on the native algorithm beforehand: TUTTI_TEMPORARY_LIMIT.)
// Threads     As the MPI library allows collectives: one at a time per communicator.
// Reference   [tuna] sections III, IV.
#pragma once

#include <mpi.h>

#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi {

int Alltoallv(const void* send, const int send_counts[], const int send_displacements[],
              MPI_Datatype send_type, void* receive, const int receive_counts[],
              const int receive_displacements[], MPI_Datatype receive_type, MPI_Comm communicator,
              const alltoallv::Algorithm& algorithm);

int Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
             int receive_count, MPI_Datatype receive_type, MPI_Comm communicator,
             const alltoallv::Algorithm& algorithm);

}  // namespace tutti::mpi

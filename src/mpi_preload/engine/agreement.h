// Agreement: what all ranks of a communicator do alike. Each rank reads its own environment, and a
// launcher may hand a variable to some nodes only; ranks that take different algorithms would wait
// for each other forever. So at the first call on a communicator its rank 0 tells the others.
//
// Model       Kept as an attribute of the program's communicator and freed with it; a duplicate
//             that the program makes agrees anew. Intercommunicators are never agreed on: their
//             calls are passed on. A program may have more communicators than the MPI library has
//             numbers for twice (MPICH: 2048): of those alive at once kMaxKept get one of Tutti's
//             beside them; where that many are on any rank, further ones are the MPI library's to
//             serve.
// Complexity  An all-reduce of 64 bytes at the first call; a comparison where a thread's latest
//             call was on the same communicator, else one look-up of an attribute.
// Errors      An MPI error code.
// Threads     One thread at a time per communicator, as for collectives.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "engine/settings.h"
#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi::preload {

inline constexpr int kMaxKept = 128;

struct Agreement {
  bool served = false;  // false: an intercommunicator
  bool kept = false;    // may have a communicator of Tutti's beside it
  alltoallv::Algorithm algorithm;
  bool check_counts = false;
  int64_t temporary_limit = kNoLimit;
  bool memory_is_limited = false;  // by the system
  bool reports = false;            // rank 0 does: what its report needs of all is collective
  // Holds for every call: nothing of it need be known, and the native algorithm serves it.
  bool passes_on() const {
    return !served || (algorithm.method == alltoallv::Method::kMpi && !check_counts && !reports);
  }
  int rank = 0;
  int size = 0;
  double granted_bytes = 0;  // memory_limit.h
};

// Between MPI_Init and MPI_Finalize.
bool IsMpiRunning();

// Collective at the first call on a communicator, when each rank proposes and its rank 0's counts.
// *agreement lives as long as the communicator; null where MPI is not running (the MPI library will
// say so).
int Agree(MPI_Comm communicator, Agreement (*propose)(), Agreement** agreement);

}  // namespace tutti::mpi::preload

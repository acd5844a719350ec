// Calls that would need more memory than there is on any rank are passed on to the MPI library,
// before anything is sent: a rank that found out in the middle of an exchange could only fail.
//
// Model       Two limits, the lower of which counts: TUTTI_TEMPORARY_LIMIT, and half of what is
//             left under the process's limits (RLIMIT_AS, RLIMIT_DATA: ulimit -v, -d). Where
//             neither is set, memory that is asked for is given, and nothing is looked at. What an
//             algorithm needs beside the program's buffers, from above: nothing where blocks go
//             straight to their receivers; the largest block of all ranks times ranks for blocks on
//             their way through a rank (TuNA, Bruck); twice that for padded Bruck, the hierarchical
//             forms and auto, which may be any; and what MPI_IN_PLACE and scattered datatypes need
//             for packing. What was granted once is kept by the engine and needs no second look.
// Complexity  An all-reduce of 24 bytes per call, and only where there is a limit.
// Errors      An MPI error code.
// Threads     As for collectives.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "engine/agreement.h"

namespace tutti::mpi::preload {

bool ProcessHasMemoryLimit();

// Collective, and the same on all ranks: each brings its largest block and what it would pack.
int ExceedsLimit(MPI_Comm communicator, Agreement& agreement, int64_t largest_block,
                 int64_t packed_bytes, bool* exceeds);

}  // namespace tutti::mpi::preload

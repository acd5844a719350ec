// What: TUTTI_TEMPORARY_LIMIT: calls that would need more memory than that on any rank are passed
// on to the MPI library. Model: what an algorithm needs beside the program's buffers, from above:
// nothing where blocks go straight to their receivers; the largest block of all ranks times ranks
// for blocks on their way through a rank (TuNA, Bruck); twice that for padded Bruck, the
// hierarchical forms and auto, which may be any; and what MPI_IN_PLACE and scattered datatypes need
// for packing. Complexity: an all-reduce of 16 bytes a call, and only where a limit is set. Errors:
// an MPI error code. Threads: as for collectives.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "dropin/engine/agreement.h"

namespace tutti::mpi::dropin {

// Collective, and the same on all ranks: each brings its largest block and what it would pack.
int ExceedsLimit(MPI_Comm communicator, const Agreement& agreement, std::int64_t largest_block,
                 std::int64_t packed_bytes, bool* exceeds);

}  // namespace tutti::mpi::dropin

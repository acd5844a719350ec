// TUTTI_CHECK=1: before an exchange, every rank tells every other how many bytes it will send, and
// each compares that with what it expects.
//
// Complexity  An all-to-all of 8 bytes per pair, and an all-reduce.
// Errors      Where any two ranks disagree, all ranks of the communicator learn it: the first pair
//             is named on standard error with its bytes, the communicator's error handler is called
//             everywhere with MPI_ERR_TRUNCATE, and that is returned if the handler returns. Nobody
//             is left waiting.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>

#include "engine/agreement.h"

namespace tutti::mpi::preload {

// Collective. The bytes of each rank's block, by the sizes of the datatypes' data.
int CheckCounts(const char* function, MPI_Comm communicator, const Agreement& agreement,
                std::span<const int64_t> send_bytes, std::span<const int64_t> receive_bytes);

}  // namespace tutti::mpi::preload

// Padded Bruck: every block padded to the largest of all ranks, which an all-reduce finds, then the
// uniform Bruck of radix 2. Kept as it is published, to compare with.
//
// Complexity  ceil(log2 P) messages per rank; P times the largest block of memory, twice.
// Errors      An MPI error code; MPI_ERR_NO_MEM.
// Reference   [tuna] section V, its reference [10].
#pragma once

#include "block_exchange.h"
#include "trace.h"

namespace tutti::mpi {

int PaddedBruckExchange(const BlockExchange& exchange, Trace* trace);

}  // namespace tutti::mpi

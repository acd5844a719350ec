// What a call of a collective is about, as far as one rank sees it: whether its arguments are right, and how many bytes all
// ranks together move.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "interface.h"

namespace tutti::mpi::preload {

bool Reduces(Collective which);
bool HasRoot(Collective which);

// Bytes of an element, which any rank's type of the same signature has. -1: not known.
int64_t SizeOf(MPI_Datatype type);

// Whether the arguments of rank `rank` of `size` are right as far as can be seen here: the MPI library says what is wrong.
bool IsSound(const CollectiveCall& call, int rank, int size);

// All ranks together; all find the same. False where no rank has any, or it is not known.
bool BytesOf(const CollectiveCall& call, int rank, int size, int64_t* bytes);

}  // namespace tutti::mpi::preload

// The addresses that Fortran programs pass for MPI_IN_PLACE and MPI_BOTTOM.
#pragma once

namespace tutti::mpi::preload {

// What C would have passed in place of `argument`.
void* FortranAddress(void* argument);

}  // namespace tutti::mpi::preload

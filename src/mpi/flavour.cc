#include "flavour.h"

namespace tutti::mpi {

const char* FlavourName() { return TUTTI_MPI_FLAVOUR; }

}  // namespace tutti::mpi

#include "hierarchy/location.h"

namespace tutti::mpi {

// Elsewhere hwloc_location.cc.
#ifdef TUTTI_MPI_SMPI
Location LocationOfThisProcess() { return {}; }
#endif

}  // namespace tutti::mpi

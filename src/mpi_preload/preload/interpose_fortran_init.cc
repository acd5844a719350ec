// MPI_Init and MPI_Init_thread of Fortran. Open MPI's call PMPI_ functions, so that interpose.cc
// does not see them.
#include "preload/library.h"
#include "preload/names.h"
#include "preload/next.h"

namespace tutti::mpi::preload {

#define TUTTI_INIT(identifier, symbol)                     \
  extern "C" void identifier(int* error) TUTTI_AS(symbol); \
  void identifier(int* error) {                            \
    static constinit Next<void(int*)> next{symbol};        \
    next(error);                                           \
    FindEngine();                                          \
  }

#define TUTTI_INIT_THREAD(identifier, symbol)                                            \
  extern "C" void identifier(int* required, int* provided, int* error) TUTTI_AS(symbol); \
  void identifier(int* required, int* provided, int* error) {                            \
    static constinit Next<void(int*, int*, int*)> next{symbol};                          \
    next(required, provided, error);                                                     \
    FindEngine();                                                                        \
  }

TUTTI_MANGLINGS(TUTTI_INIT, mpi_init, MPI_INIT, MPI_Init, ompi_init_f)
TUTTI_MANGLINGS(TUTTI_INIT_THREAD, mpi_init_thread, MPI_INIT_THREAD, MPI_Init_thread,
                ompi_init_thread_f)

}  // namespace tutti::mpi::preload

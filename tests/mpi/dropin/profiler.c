/* A tool that wraps MPI_Alltoallv by the profiling interface, as many do. */
#include <mpi.h>
#include <stdio.h>

static int seen = 0;

int MPI_Alltoallv(const void* s, const int* sn, const int* sd, MPI_Datatype st, void* r,
                  const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c) {
  ++seen;
  return PMPI_Alltoallv(s, sn, sd, st, r, rn, rd, rt, c);
}

int MPI_Finalize(void) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("profiler: %d calls of MPI_Alltoallv\n", seen);
  return PMPI_Finalize();
}

/* Rank 1 ends without a word where the others begin an all-to-all. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, size, round;
  int* data;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  data = calloc(2 * size, sizeof(int));
  for (round = 0; round < 100; ++round) {
    if (rank == 1 && round == 50) raise(SIGKILL);
    MPI_Alltoall(data, 1, MPI_INT, data + size, 1, MPI_INT, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  free(data);
  return 0;
}

/* Calls Tutti by name, linked against the library; its own MPI_Alltoallv goes there, too. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "tutti/mpi/tutti_mpi.h"

enum { kMaxRanks = 64 };

int main(int argc, char** argv) {
  int rank, size, i, round, faults = 0, all = 0;
  int send[kMaxRanks], receive[kMaxRanks], counts[kMaxRanks], at[kMaxRanks];
  tutti_exchange exchange;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (i = 0; i < size; ++i) {
    send[i] = 100 * rank + i;
    counts[i] = 1;
    at[i] = i;
  }
  memset(receive, 0, sizeof receive);
  faults += tutti_alltoallv(send, counts, at, MPI_INT, receive, counts, at, MPI_INT, MPI_COMM_WORLD,
                            "tuna:r=2") != MPI_SUCCESS;
  for (i = 0; i < size; ++i) faults += receive[i] != 100 * i + rank;
  memset(receive, 0, sizeof receive);
  faults += tutti_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD, "pairwise") != MPI_SUCCESS;
  for (i = 0; i < size; ++i) faults += receive[i] != 100 * i + rank;

  faults += tutti_alltoallv_init(send, counts, at, MPI_INT, receive, counts, at, MPI_INT,
                                 MPI_COMM_WORLD, "tuna:r=2", &exchange) != MPI_SUCCESS;
  for (round = 0; round < 3; ++round) {
    memset(receive, 0, sizeof receive);
    faults += tutti_start(exchange) != MPI_SUCCESS;
    faults += tutti_wait(exchange) != MPI_SUCCESS;
    for (i = 0; i < size; ++i) faults += receive[i] != 100 * i + rank;
  }
  faults += tutti_free(&exchange) != MPI_SUCCESS;

  faults += tutti_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD, "fastest") == MPI_SUCCESS;
  if (rank == 0) printf("fastest: %s\n", tutti_mpi_message());
  MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD);

  MPI_Allreduce(&faults, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("named: %d faults\n", all);
  MPI_Finalize();
  return all != 0;
}

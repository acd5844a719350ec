/* Exchanges blocks of 4 MiB where the process may take 24 MiB more. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int main(int argc, char** argv) {
  const int block = 4 << 20;
  int rank, size, i, *counts, *at, faults = 0, all = 0;
  long long pages = 0;
  char *send, *receive;
  struct rlimit limit;
  FILE* file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  counts = malloc(size * sizeof(int));
  at = malloc(size * sizeof(int));
  send = malloc((size_t)size * block);
  receive = malloc((size_t)size * block);
  for (i = 0; i < size; ++i) {
    counts[i] = 64;
    at[i] = i * block;
    memset(send + (size_t)i * block, rank + 10 * i, block);
  }
  /* Small ones first: connections are made. */
  MPI_Alltoallv(send, counts, at, MPI_CHAR, receive, counts, at, MPI_CHAR, MPI_COMM_WORLD);
  file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%lld", &pages) != 1) return 2;
  fclose(file);
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = (rlim_t)pages * 4096 + (24 << 20);
  setrlimit(RLIMIT_AS, &limit);
  for (i = 0; i < size; ++i) counts[i] = block;
  MPI_Alltoallv(send, counts, at, MPI_CHAR, receive, counts, at, MPI_CHAR, MPI_COMM_WORLD);
  for (i = 0; i < size; ++i) {
    faults += receive[(size_t)i * block] != (char)(i + 10 * rank);
    faults += receive[(size_t)(i + 1) * block - 1] != (char)(i + 10 * rank);
  }
  MPI_Allreduce(&faults, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("tight: %d faults\n", all);
  MPI_Finalize();
  return all != 0;
}

/* Times MPI_Alltoallv as a program meets it: every rank sends every other a block of uneven size.
 *   mpicc -O2 exchange.c -o exchange
 *   mpirun -np 16 ./exchange [LARGEST BLOCK IN BYTES] [CALLS]
 * It knows nothing of Tutti: run it with and without LD_PRELOAD=libtutti_mpi.so. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int Ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  int largest = argc > 1 ? atoi(argv[1]) : 16, calls = argc > 2 ? atoi(argv[2]) : 1000;
  int rank, size, i, call, faults = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  int* counts = malloc(4 * size * sizeof(int));
  int *send_counts = counts, *send_at = counts + size;
  int *receive_counts = counts + 2 * size, *receive_at = counts + 3 * size;
  char* send = malloc((size_t)size * largest + 1);
  char* receive = malloc((size_t)size * largest + 1);
  double* seconds = malloc(calls * sizeof(double));
  for (i = 0; i < size; ++i) {
    send_counts[i] = (rank * 7 + i * 13) % (largest + 1);
    receive_counts[i] = (i * 7 + rank * 13) % (largest + 1);
    send_at[i] = receive_at[i] = i * largest;
  }
  for (i = 0; i < size * largest; ++i) send[i] = (char)(rank + i / largest);

  for (call = 0; call < calls; ++call) {
    const double begin = MPI_Wtime();
    MPI_Alltoallv(send, send_counts, send_at, MPI_CHAR, receive, receive_counts, receive_at,
                  MPI_CHAR, MPI_COMM_WORLD);
    seconds[call] = MPI_Wtime() - begin;
  }
  for (i = 0; i < size; ++i) {
    for (call = 0; call < receive_counts[i]; ++call) {
      faults += receive[receive_at[i] + call] != (char)(i + rank);
    }
  }

  qsort(seconds, calls, sizeof(double), Ascending);
  MPI_Allreduce(MPI_IN_PLACE, &faults, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d ranks, blocks up to %d B: median of %d calls %.1f us, wrong bytes %d\n", size, largest,
           calls, seconds[calls / 2] * 1e6, faults);
  }
  free(counts);
  free(send);
  free(receive);
  free(seconds);
  MPI_Finalize();
  return faults != 0;
}

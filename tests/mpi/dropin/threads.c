/* Four threads of each rank exchange at once, each on a communicator of its own. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 4, kRounds = 50, kMaxRanks = 64 };

static MPI_Comm communicators[kThreads];
static int faults[kThreads];

static void* Exchange(void* number) {
  const int thread = *(const int*)number;
  int rank, size, round, i;
  int send[kMaxRanks], receive[kMaxRanks], counts[kMaxRanks], at[kMaxRanks];
  MPI_Comm_rank(communicators[thread], &rank);
  MPI_Comm_size(communicators[thread], &size);
  for (round = 0; round < kRounds; ++round) {
    for (i = 0; i < size; ++i) {
      send[i] = 10000 * thread + 1000 * round + 10 * rank + i;
      receive[i] = -1;
      counts[i] = 1;
      at[i] = i;
    }
    MPI_Alltoallv(send, counts, at, MPI_INT, receive, counts, at, MPI_INT, communicators[thread]);
    for (i = 0; i < size; ++i) {
      faults[thread] += receive[i] != 10000 * thread + 1000 * round + 10 * i + rank;
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  int level, rank, i, sum = 0, all = 0, numbers[kThreads];
  pthread_t threads[kThreads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
  }
  for (i = 0; i < kThreads; ++i) {
    /* Where the library has less, one after the other. */
    if (level < MPI_THREAD_MULTIPLE) Exchange(&numbers[i]);
    else pthread_create(&threads[i], NULL, Exchange, &numbers[i]);
  }
  for (i = 0; i < kThreads; ++i) {
    if (level == MPI_THREAD_MULTIPLE) pthread_join(threads[i], NULL);
    sum += faults[i];
    MPI_Comm_free(&communicators[i]);
  }
  MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("threads: level %s, %d faults\n", level == MPI_THREAD_MULTIPLE ? "multiple" : "less", all);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

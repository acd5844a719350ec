// Collectives with a root on communicators that come and go, so that their handles are used again for
// other ranks: groups of two, then all in reverse order. Sizes lie on both sides of what is left to the MPI
// library, and what a rank's arguments need not say they say wrongly. Answers are compared.
//   rooted ROUNDS CALLS    calls on each communicator of all
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kElements = 100, kMaxRanks = 16 };

static int send[kElements * kMaxRanks], receive[kElements * kMaxRanks];

// A block of each rank to the root and from it to each.
static int Exchange(MPI_Comm communicator, int root, int elements) {
  int rank = 0, ranks = 0, faults = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);
  const int is_root = rank == root;
  for (int i = 0; i < elements; ++i) send[i] = 1000 * rank + i;
  MPI_Gather(send, elements, MPI_INT, receive, is_root ? elements : -1,
             is_root ? MPI_INT : MPI_DATATYPE_NULL, root, communicator);
  for (int i = 0; is_root && i < elements * ranks; ++i)
    faults += receive[i] != 1000 * (i / elements) + i % elements;
  for (int i = 0; i < elements * ranks; ++i) send[i] = 7 * i;
  MPI_Scatter(send, is_root ? elements : -1, is_root ? MPI_INT : MPI_DATATYPE_NULL, receive,
              elements, MPI_INT, root, communicator);
  for (int i = 0; i < elements; ++i) faults += receive[i] != 7 * (rank * elements + i);
  for (int i = 0; i < elements; ++i) send[i] = is_root ? i + root : -1;
  MPI_Bcast(send, elements, MPI_INT, root, communicator);
  for (int i = 0; i < elements; ++i) faults += send[i] != i + root;
  MPI_Reduce(send, receive, elements, MPI_INT, MPI_SUM, root, communicator);
  for (int i = 0; is_root && i < elements; ++i) faults += receive[i] != ranks * (i + root);
  return faults;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1, calls = argc > 2 ? atoi(argv[2]) : 1;
  int rank = 0, ranks = 0, faults = 0, all_faults = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm pair, all;
    // Only some ranks call here, so that only they know of a communicator that is gone.
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    if (rank < 2) faults += Exchange(pair, round % 2, kElements) + Exchange(pair, 0, 1);
    MPI_Comm_free(&pair);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &all);
    for (int call = 0; call < calls; ++call)
      faults += Exchange(all, (round + call) % ranks, call % 3 == 0 ? kElements : 1);
    MPI_Comm_free(&all);
  }
  MPI_Reduce(&faults, &all_faults, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("rooted: %d ranks, %d faults\n", ranks, all_faults);
  MPI_Finalize();
  return all_faults != 0;
}

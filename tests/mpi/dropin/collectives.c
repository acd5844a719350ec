// Every collective beside the all-to-alls once, blocking, in place where it may be, and one
// non-blocking: answers are compared with what they must be. With an argument: one all-reduce of
// doubles.
#include <mpi.h>
#include <stdio.h>

enum { kMaxRanks = 64 };

int main(int argc, char** argv) {
  int rank = 0, ranks = 0, faults = 0, all_faults = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 1) {
    double mine = 0.25 * (rank + 1), sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (sum != 0.125 * ranks * (ranks + 1)) faults = 1;
    if (rank == 0) printf("collectives: %d ranks, %d faults\n", ranks, faults);
    MPI_Finalize();
    return faults;
  }
  const int root = ranks - 1, sum = ranks * (ranks + 1) / 2;
  int mine = rank + 1, got = 0, all[kMaxRanks], counts[kMaxRanks], at[kMaxRanks],
      many[2 * kMaxRanks];
  for (int i = 0; i < ranks; ++i) {
    counts[i] = 1 + i % 2;
    at[i] = 2 * i;
  }

  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  faults += got != sum;
  got = mine;
  MPI_Allreduce(MPI_IN_PLACE, &got, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  faults += got != ranks;

  MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < ranks; ++i) faults += all[i] != i + 1;

  for (int i = 0; i < 2 * ranks; ++i) many[i] = -1;
  many[at[rank]] = many[at[rank] + counts[rank] - 1] = mine;
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, many, counts, at, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < ranks; ++i) {
    faults += many[at[i]] != i + 1;
    faults += many[at[i] + 1] != (counts[i] == 2 ? i + 1 : -1);
  }

  got = rank == root ? 4711 : 0;
  MPI_Bcast(&got, 1, MPI_INT, root, MPI_COMM_WORLD);
  faults += got != 4711;

  got = 0;
  MPI_Reduce(&mine, &got, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  faults += got != (rank == root ? sum : 0);

  for (int i = 0; i < ranks; ++i) all[i] = 0;
  MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < ranks; ++i) faults += all[i] != (rank == root ? i + 1 : 0);

  MPI_Scatter(all, 1, MPI_INT, rank == root ? MPI_IN_PLACE : (void*)&got, 1, MPI_INT, root,
              MPI_COMM_WORLD);
  if (rank != root) faults += got != rank + 1;

  for (int i = 0; i < ranks; ++i) all[i] = mine * (i + 1);
  MPI_Reduce_scatter_block(all, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  faults += got != sum * (rank + 1);

  int elements = 0;
  for (int i = 0; i < ranks; ++i) elements += counts[i];
  for (int i = 0; i < elements; ++i) many[i] = mine + i;
  int part[2] = {0, 0}, before = 0;
  MPI_Reduce_scatter(many, part, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < rank; ++i) before += counts[i];
  for (int i = 0; i < counts[rank]; ++i) faults += part[i] != sum + ranks * (before + i);

  MPI_Request request;
  MPI_Iallreduce(&mine, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  faults += got != sum;

  MPI_Reduce(&faults, &all_faults, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("collectives: %d ranks, %d faults\n", ranks, all_faults);
  MPI_Finalize();
  return faults != 0;
}

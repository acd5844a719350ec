/* Creates, uses and frees many communicators; prints by how many KiB the process grew over the
 * second half of them.
 *   free_communicators NUMBER [keep]    keep: frees none before all are made */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long ResidentKib(void) {
  long pages = 0, ignored;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &ignored, &pages) != 2) pages = -1;
  if (file != NULL) fclose(file);
  return pages * 4;
}

int main(int argc, char** argv) {
  int rank, size, i, communicators = argc > 1 ? atoi(argv[1]) : 100, keep = argc > 2;
  MPI_Comm* kept = malloc(sizeof(MPI_Comm) * (communicators + 1));
  int send[64], receive[64];
  long halfway = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (i = 0; i < communicators; ++i) {
    MPI_Comm copy;
    int k;
    for (k = 0; k < size; ++k) send[k] = 100 * rank + k + i;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, copy);
    kept[i] = copy;
    if (!keep) MPI_Comm_free(&copy);
    for (k = 0; k < size; ++k) {
      if (receive[k] != 100 * k + rank + i) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (i == communicators / 2) halfway = ResidentKib();
  }
  if (rank == 0) printf("%d communicators, grown by %ld KiB\n", communicators, ResidentKib() - halfway);
  for (i = 0; keep && i < communicators; ++i) MPI_Comm_free(&kept[i]);
  free(kept);
  MPI_Finalize();
  return 0;
}

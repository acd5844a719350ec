/* Rank 1 sends rank 0 five ints, of which rank 0 expects three.
 *   mismatch          MPI's default error handler
 *   mismatch return   the program handles errors itself and goes on
 *   mismatch part     the same among the odd ranks of the world, from the last to the first */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  int rank, size, i, code, error_class, matches = 0;
  MPI_Comm communicator = MPI_COMM_WORLD;
  int send_counts[16], receive_counts[16], at[16], send[16 * 8], receive[16 * 8];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && strcmp(argv[1], "part") == 0) {
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &communicator);
    MPI_Comm_set_name(communicator, rank % 2 == 1 ? "odd" : "even");
    matches = rank % 2 == 0;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &size);
  }
  if (argc > 1) MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  memset(send, 0, sizeof send);
  for (i = 0; i < size; ++i) {
    send_counts[i] = receive_counts[i] = 3;
    at[i] = 8 * i;
  }
  if (rank == 1 && !matches) send_counts[0] = 5;
  code = MPI_Alltoallv(send, send_counts, at, MPI_INT, receive, receive_counts, at, MPI_INT,
                       communicator);
  MPI_Error_class(code, &error_class);
  printf("rank %d went on with %s\n", rank, error_class == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE" : "another code");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}

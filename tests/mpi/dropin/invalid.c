/* Wrong arguments, on every rank: prints the class of each error that MPI returns. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank;

static void Say(const char* what, int code) {
  int error_class;
  MPI_Error_class(code, &error_class);
  if (rank == 0) printf("%s: %s\n", what, error_class == MPI_SUCCESS ? "accepted" :
                        error_class == MPI_ERR_COUNT ? "count" :
                        error_class == MPI_ERR_TYPE ? "type" :
                        error_class == MPI_ERR_COMM ? "communicator" :
                        error_class == MPI_ERR_ARG ? "argument" : "another");
}

int main(int argc, char** argv) {
  int size, i, *counts, *negative, *at, *send, *receive;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  counts = calloc(size, sizeof(int));
  negative = calloc(size, sizeof(int));
  at = calloc(size, sizeof(int));
  send = calloc(size, sizeof(int));
  receive = calloc(size, sizeof(int));
  for (i = 0; i < size; ++i) {
    counts[i] = 1;
    negative[i] = -1;
    at[i] = i;
  }
  Say("negative counts to send", MPI_Alltoallv(send, negative, at, MPI_INT, receive, counts, at, MPI_INT, MPI_COMM_WORLD));
  Say("negative counts to receive", MPI_Alltoallv(send, counts, at, MPI_INT, receive, negative, at, MPI_INT, MPI_COMM_WORLD));
#if defined(OPEN_MPI) /* MPICH itself does not look */
  Say("no counts", MPI_Alltoallv(send, NULL, at, MPI_INT, receive, counts, at, MPI_INT, MPI_COMM_WORLD));
#endif
  Say("no type to send", MPI_Alltoallv(send, counts, at, MPI_DATATYPE_NULL, receive, counts, at, MPI_INT, MPI_COMM_WORLD));
  Say("no type to receive", MPI_Alltoallv(send, counts, at, MPI_INT, receive, counts, at, MPI_DATATYPE_NULL, MPI_COMM_WORLD));
  Say("no communicator", MPI_Alltoallv(send, counts, at, MPI_INT, receive, counts, at, MPI_INT, MPI_COMM_NULL));
  Say("negative count", MPI_Alltoall(send, -1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD));
  Say("no type", MPI_Alltoall(send, 1, MPI_DATATYPE_NULL, receive, 1, MPI_INT, MPI_COMM_WORLD));
  Say("all right", MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD));
  MPI_Finalize();
  return 0;
}

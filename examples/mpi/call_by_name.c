/* Calls Tutti's all-to-all-v by name and in the persistent form, and checks the answers.
 *
 *   mpicc.openmpi call_by_name.c -ltutti_mpi_openmpi -ltutti_tune -ltutti_alltoallv \
 *                 -ltutti_base -lhwloc -lstdc++ -lm
 *
 *   mpirun -np 8 ./a.out tuna:r=3
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/mpi/tutti_mpi.h>

int main(int argc, char **argv) {
  const char *algorithm = argc > 1 ? argv[1] : "auto";
  int rank, size, sent = 0, received = 0, wrong = 0, wrong_anywhere = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  /* Rank p sends (p + q) % 4 doubles to rank q. */
  int *send_counts = malloc(sizeof(int) * size), *send_displacements = malloc(sizeof(int) * size);
  int *receive_displacements = malloc(sizeof(int) * size);
  for (int peer = 0; peer < size; ++peer) {
    send_counts[peer] = (rank + peer) % 4; /* and as many come back */
    send_displacements[peer] = sent;
    receive_displacements[peer] = received;
    sent += send_counts[peer];
    received += send_counts[peer];
  }
  double *send = malloc(sizeof(double) * (sent + 1)),
         *receive = malloc(sizeof(double) * (received + 1));
  for (int k = 0; k < sent; ++k) send[k] = rank;

  int error =
      tutti_alltoallv(send, send_counts, send_displacements, MPI_DOUBLE, receive, send_counts,
                      receive_displacements, MPI_DOUBLE, MPI_COMM_WORLD, algorithm);
  if (error != MPI_SUCCESS) {
    if (rank == 0) fprintf(stderr, "%s\n", tutti_mpi_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  /* The same sizes many times: what ranks must tell each other about them is told once. */
  tutti_exchange exchange;
  tutti_alltoallv_init(send, send_counts, send_displacements, MPI_DOUBLE, receive, send_counts,
                       receive_displacements, MPI_DOUBLE, MPI_COMM_WORLD, algorithm, &exchange);
  for (int turn = 1; turn <= 3; ++turn) {
    for (int k = 0; k < sent; ++k) send[k] = rank + 1000 * turn;
    tutti_start(exchange);
    tutti_wait(exchange);
    for (int peer = 0; peer < size; ++peer) {
      for (int k = 0; k < send_counts[peer]; ++k) {
        if (receive[receive_displacements[peer] + k] != peer + 1000 * turn) ++wrong;
      }
    }
  }
  tutti_free(&exchange);

  MPI_Allreduce(&wrong, &wrong_anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%s on %d ranks: %d wrong\n", algorithm, size, wrong_anywhere);
  free(send_counts), free(send_displacements), free(receive_displacements), free(send),
      free(receive);
  MPI_Finalize();
  return wrong_anywhere != 0;
}

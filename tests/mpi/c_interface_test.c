/* The C header, compiled as C: rank p sends p + 1 ints to every rank, by name and in the persistent
 * form. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tutti/mpi/tutti_mpi.h"

static int failures = 0;

static void expect(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

int main(int argc, char **argv) {
  int rank = 0, size = 0, all = 0;
  const char *names[] = {"mpi", "linear", "tuna:r=2", "tuna:r=8", "padded-bruck"};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int *memory = calloc((size_t)(4 * size), sizeof(int));
  int *send_counts = memory, *send_places = memory + size;
  int *receive_counts = memory + 2 * size, *receive_places = memory + 3 * size;
  int sent = 0, received = 0;
  for (int peer = 0; peer < size; ++peer) {
    send_counts[peer] = rank + 1;
    receive_counts[peer] = peer + 1;
    send_places[peer] = sent;
    receive_places[peer] = received;
    sent += send_counts[peer];
    received += receive_counts[peer];
  }
  int *out = calloc((size_t)sent, sizeof(int));
  int *in = calloc((size_t)received, sizeof(int));
  for (size_t each = 0; each < sizeof(names) / sizeof(*names); ++each) {
    tutti_exchange exchange = NULL;
    expect(tutti_alltoallv_init(out, send_counts, send_places, MPI_INT, in, receive_counts,
                                receive_places, MPI_INT, MPI_COMM_WORLD, names[each],
                                &exchange) == MPI_SUCCESS,
           names[each]);
    for (int turn = 0; turn < 3; ++turn) {
      for (int k = 0; k < sent; ++k) out[k] = 1000 * rank + k / (rank + 1) + turn;
      memset(in, 0, (size_t)received * sizeof(int));
      if (turn == 0) {
        expect(tutti_alltoallv(out, send_counts, send_places, MPI_INT, in, receive_counts,
                               receive_places, MPI_INT, MPI_COMM_WORLD, names[each]) == MPI_SUCCESS,
               names[each]);
      } else {
        expect(tutti_start(exchange) == MPI_SUCCESS, names[each]);
        expect(tutti_wait(exchange) == MPI_SUCCESS, names[each]);
      }
      for (int peer = 0; peer < size; ++peer) {
        for (int k = 0; k <= peer; ++k) {
          expect(in[receive_places[peer] + k] == 1000 * peer + rank + turn, names[each]);
        }
      }
    }
    expect(tutti_free(&exchange) == MPI_SUCCESS && exchange == NULL, names[each]);
    /* Rank p to rank q: p, to everyone the same. */
    for (int peer = 0; peer < size; ++peer) out[peer] = rank;
    expect(
        tutti_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, names[each]) == MPI_SUCCESS,
        names[each]);
    for (int peer = 0; peer < size; ++peer) expect(in[peer] == peer, names[each]);
  }
  expect(tutti_start(NULL) == MPI_ERR_REQUEST, "start of nothing");
  free(in);
  free(out);
  free(memory);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

/* A program that knows nothing of Tutti: all-to-alls of every form, each compared with what MPI
 * says must come out. Prints one line on rank 0; ends with 1 where anything differs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int faults = 0;

static void Expect(int right, const char* what) {
  if (right) return;
  ++faults;
  fprintf(stderr, "wrong: %s\n", what);
}

/* The value of item k that rank `from` sends to rank `to`. */
static int Item(int from, int to, int k) { return from * 10000 + to * 100 + k; }
/* How many of them: uneven, with zeros. */
static int Count(int from, int to) { return (from * 3 + to * 5) % 4; }

typedef struct {
  int rank, size;
  int *send_counts, *send_at, *receive_counts, *receive_at;
  int *send, *receive;
  int receive_room;
} Exchange;

/* Blocks in descending order of rank, with a hole before each. */
static Exchange Make(MPI_Comm communicator, int size) {
  Exchange e;
  int at_send = 1, at_receive = 2, to, k;
  MPI_Comm_rank(communicator, &e.rank);
  e.size = size;
  e.send_counts = malloc(sizeof(int) * size);
  e.send_at = malloc(sizeof(int) * size);
  e.receive_counts = malloc(sizeof(int) * size);
  e.receive_at = malloc(sizeof(int) * size);
  for (to = size - 1; to >= 0; --to) {
    e.send_counts[to] = Count(e.rank, to);
    e.send_at[to] = at_send;
    at_send += e.send_counts[to] + 1;
    e.receive_counts[to] = Count(to, e.rank);
    e.receive_at[to] = at_receive;
    at_receive += e.receive_counts[to] + 2;
  }
  e.send = malloc(sizeof(int) * at_send);
  e.receive = malloc(sizeof(int) * at_receive);
  e.receive_room = at_receive;
  memset(e.receive, 0xff, sizeof(int) * at_receive);
  memset(e.send, 0xee, sizeof(int) * at_send);
  for (to = 0; to < size; ++to) {
    for (k = 0; k < e.send_counts[to]; ++k) e.send[e.send_at[to] + k] = Item(e.rank, to, k);
  }
  return e;
}

static void Check(const Exchange* e, const char* what) {
  int from, k, items = 0, untouched = 0;
  for (from = 0; from < e->size; ++from) {
    for (k = 0; k < e->receive_counts[from]; ++k, ++items) {
      Expect(e->receive[e->receive_at[from] + k] == Item(from, e->rank, k), what);
    }
  }
  for (k = 0; k < e->receive_room; ++k) untouched += e->receive[k] == -1;
  Expect(untouched == e->receive_room - items, what);
}

static void Free(Exchange* e) {
  free(e->send_counts);
  free(e->send_at);
  free(e->receive_counts);
  free(e->receive_at);
  free(e->send);
  free(e->receive);
}

static void Vector(MPI_Comm communicator, const char* what) {
  int size;
  Exchange e;
  MPI_Comm_size(communicator, &size);
  e = Make(communicator, size);
  MPI_Alltoallv(e.send, e.send_counts, e.send_at, MPI_INT, e.receive, e.receive_counts,
                e.receive_at, MPI_INT, communicator);
  Check(&e, what);
  Free(&e);
}

static void Uniform(MPI_Comm communicator, const char* what) {
  int rank, size, i, k;
  int *send, *receive;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  send = malloc(sizeof(int) * 3 * size);
  receive = malloc(sizeof(int) * 3 * size);
  for (i = 0; i < size; ++i) {
    for (k = 0; k < 3; ++k) send[3 * i + k] = Item(rank, i, k);
  }
  MPI_Alltoall(send, 3, MPI_INT, receive, 3, MPI_INT, communicator);
  for (i = 0; i < 3 * size; ++i) Expect(receive[i] == Item(i / 3, rank, i % 3), what);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, send, 3, MPI_INT, communicator);
  for (i = 0; i < 3 * size; ++i) Expect(send[i] == Item(i / 3, rank, i % 3), what);
  free(send);
  free(receive);
}

/* Every second int of a block, through a datatype with a stretched extent. */
static void Strided(MPI_Comm communicator) {
  MPI_Datatype every_second;
  int rank, size, i, k;
  int *send, *receive, *counts, *at;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_second);
  MPI_Type_commit(&every_second);
  send = malloc(sizeof(int) * 4 * size);
  receive = malloc(sizeof(int) * 4 * size);
  counts = malloc(sizeof(int) * size);
  at = malloc(sizeof(int) * size);
  for (i = 0; i < 4 * size; ++i) receive[i] = -1;
  for (i = 0; i < size; ++i) {
    counts[i] = 2;
    at[i] = 2 * i;
    for (k = 0; k < 4; ++k) send[4 * i + k] = Item(rank, i, k);
  }
  MPI_Alltoallv(send, counts, at, every_second, receive, counts, at, every_second, communicator);
  for (i = 0; i < 4 * size; ++i) {
    Expect(receive[i] == (i % 2 == 0 ? Item(i / 4, rank, i % 4) : -1), "strided");
  }
  MPI_Type_free(&every_second);
  free(send);
  free(receive);
  free(counts);
  free(at);
}

static void InPlace(MPI_Comm communicator) {
  int rank, size, i, *data, *counts, *at;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  data = malloc(sizeof(int) * size);
  counts = malloc(sizeof(int) * size);
  at = malloc(sizeof(int) * size);
  for (i = 0; i < size; ++i) {
    data[i] = Item(rank, i, 0);
    counts[i] = 1;
    at[i] = i;
  }
  MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, data, counts, at, MPI_INT,
                communicator);
  for (i = 0; i < size; ++i) Expect(data[i] == Item(i, rank, 0), "in place");
  free(data);
  free(counts);
  free(at);
}

/* The two halves of the world exchange with each other. */
static void Between(MPI_Comm half, int side) {
  MPI_Comm between;
  int rank, others, i, *send, *receive, *counts, *at;
  MPI_Comm_rank(half, &rank);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 7, &between);
  MPI_Comm_remote_size(between, &others);
  send = malloc(sizeof(int) * others);
  receive = malloc(sizeof(int) * others);
  counts = malloc(sizeof(int) * others);
  at = malloc(sizeof(int) * others);
  for (i = 0; i < others; ++i) {
    send[i] = Item(rank, i, side);
    counts[i] = 1;
    at[i] = i;
  }
  MPI_Alltoallv(send, counts, at, MPI_INT, receive, counts, at, MPI_INT, between);
  for (i = 0; i < others; ++i) Expect(receive[i] == Item(i, rank, 1 - side), "intercommunicator");
  MPI_Comm_free(&between);
  free(send);
  free(receive);
  free(counts);
  free(at);
}

static void Nonblocking(MPI_Comm communicator) {
  int size;
  Exchange e;
  MPI_Request request;
  MPI_Comm_size(communicator, &size);
  e = Make(communicator, size);
  MPI_Ialltoallv(e.send, e.send_counts, e.send_at, MPI_INT, e.receive, e.receive_counts,
                 e.receive_at, MPI_INT, communicator, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  Check(&e, "nonblocking");
  Free(&e);
}

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#define ALLTOALLV_INIT MPIX_Alltoallv_init
#else
#define ALLTOALLV_INIT MPI_Alltoallv_init
#endif

static void Persistent(MPI_Comm communicator) {
  int size, round;
  Exchange e;
  MPI_Request request;
  MPI_Comm_size(communicator, &size);
  e = Make(communicator, size);
  ALLTOALLV_INIT(e.send, e.send_counts, e.send_at, MPI_INT, e.receive, e.receive_counts,
                 e.receive_at, MPI_INT, communicator, MPI_INFO_NULL, &request);
  for (round = 0; round < 2; ++round) {
    memset(e.receive, 0xff, sizeof(int) * e.receive_room);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    Check(&e, "persistent");
  }
  MPI_Request_free(&request);
  Free(&e);
}

#if defined(AS_MODULE)
int RunProgram(int argc, char** argv) {
#else
int main(int argc, char** argv) {
#endif
  int rank, size, all = 0;
  MPI_Comm half, reversed;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);

  Vector(MPI_COMM_WORLD, "world");
  Vector(MPI_COMM_SELF, "self");
  Vector(half, "half");
  Vector(reversed, "reversed");
  Uniform(MPI_COMM_WORLD, "uniform");
  Uniform(half, "uniform half");
  Strided(reversed);
  InPlace(MPI_COMM_WORLD);
  if (size > 1) Between(half, rank % 2);
  Nonblocking(MPI_COMM_WORLD);
  Persistent(MPI_COMM_WORLD);

  MPI_Comm_free(&half);
  MPI_Comm_free(&reversed);
  MPI_Allreduce(&faults, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("exchange: %d ranks, %d faults\n", size, all);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

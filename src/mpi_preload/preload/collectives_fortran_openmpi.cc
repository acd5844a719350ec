// The Fortran names that Open MPI has for the collectives beside the all-to-alls (see
// interpose_fortran_openmpi.cc). All arguments are addresses, so that only their number matters
// where a call is passed on.
//
// Invariant   Where there is no engine, arguments reach the next function of the same name unread.
#include "interface.h"
#include "preload/library.h"
#include "preload/names.h"
#include "preload/next.h"

namespace tutti::mpi::preload {
namespace {

const int* Int(void* argument) { return static_cast<const int*>(argument); }

}  // namespace

#define TUTTI_P2 void *a0, void *a1
#define TUTTI_P3 TUTTI_P2, void* a2
#define TUTTI_P4 TUTTI_P3, void* a3
#define TUTTI_P5 TUTTI_P4, void* a4
#define TUTTI_P6 TUTTI_P5, void* a5
#define TUTTI_P7 TUTTI_P6, void* a6
#define TUTTI_P8 TUTTI_P7, void* a7
#define TUTTI_P9 TUTTI_P8, void* a8
#define TUTTI_P10 TUTTI_P9, void* a9
#define TUTTI_P11 TUTTI_P10, void* a10
#define TUTTI_A2 a0, a1
#define TUTTI_A3 TUTTI_A2, a2
#define TUTTI_A4 TUTTI_A3, a3
#define TUTTI_A5 TUTTI_A4, a4
#define TUTTI_A6 TUTTI_A5, a5
#define TUTTI_A7 TUTTI_A6, a6
#define TUTTI_A8 TUTTI_A7, a7
#define TUTTI_A9 TUTTI_A8, a8
#define TUTTI_A10 TUTTI_A9, a9
#define TUTTI_A11 TUTTI_A10, a10

// A function of n arguments, the last of which takes the error code; the rest says what a
// FortranCollectiveCall has of them.
#define TUTTI_SERVED(identifier, symbol, n, error, ...)         \
  extern "C" void identifier(TUTTI_P##n) TUTTI_AS(symbol);      \
  void identifier(TUTTI_P##n) {                                 \
    static constinit Next<void(TUTTI_P##n)> next{symbol};       \
    const Engine* engine = FindEngine();                        \
    if (engine == nullptr) return next(TUTTI_A##n);             \
    const int code = engine->fortran_collective({__VA_ARGS__}); \
    if (error != nullptr) *static_cast<int*>(error) = code;     \
  }

#define TUTTI_COUNTED(identifier, symbol, n, passed_on)    \
  extern "C" void identifier(TUTTI_P##n) TUTTI_AS(symbol); \
  void identifier(TUTTI_P##n) {                            \
    static constinit Next<void(TUTTI_P##n)> next{symbol};  \
    CountPassedOn(passed_on);                              \
    next(TUTTI_A##n);                                      \
  }

// n, of the non-blocking form, of the persistent one.
#define TUTTI_PASSED_ON(lower, upper, Mixed, which, of_nonblocking, of_persistent)                 \
  TUTTI_MANGLINGS_OF(TUTTI_COUNTED, mpi_i##lower, MPI_I##upper, MPI_I##lower, ompi_i##lower##_f,   \
                     of_nonblocking, NonblockingOf(Collective::which))                             \
  TUTTI_MANGLINGS_OF(TUTTI_COUNTED, mpix_##lower##_init, MPIX_##upper##_INIT, MPIX_##Mixed##_init, \
                     ompix_##lower##_init_f, of_persistent, PersistentOf(Collective::which))

TUTTI_MANGLINGS_OF(TUTTI_SERVED, mpi_allreduce, MPI_ALLREDUCE, MPI_Allreduce, ompi_allreduce_f, 7,
                   a6, .which = Collective::kAllreduce, .send = a0, .receive = a1,
                   .receive_count = Int(a2), .receive_type = Int(a3), .op = Int(a4),
                   .communicator = Int(a5))
TUTTI_PASSED_ON(allreduce, ALLREDUCE, Allreduce, kAllreduce, 8, 9)

TUTTI_MANGLINGS_OF(TUTTI_SERVED, mpi_allgather, MPI_ALLGATHER, MPI_Allgather, ompi_allgather_f, 8,
                   a7, .which = Collective::kAllgather, .send = a0, .send_count = Int(a1),
                   .send_type = Int(a2), .receive = a3, .receive_count = Int(a4),
                   .receive_type = Int(a5), .communicator = Int(a6))
TUTTI_PASSED_ON(allgather, ALLGATHER, Allgather, kAllgather, 9, 10)

TUTTI_MANGLINGS_OF(TUTTI_SERVED, mpi_allgatherv, MPI_ALLGATHERV, MPI_Allgatherv, ompi_allgatherv_f,
                   9, a8, .which = Collective::kAllgatherv, .send = a0, .send_count = Int(a1),
                   .send_type = Int(a2), .receive = a3, .receive_type = Int(a6), .counts = Int(a4),
                   .displacements = Int(a5), .communicator = Int(a7))
TUTTI_PASSED_ON(allgatherv, ALLGATHERV, Allgatherv, kAllgatherv, 10, 11)

TUTTI_MANGLINGS_OF(TUTTI_SERVED, mpi_reduce_scatter, MPI_REDUCE_SCATTER, MPI_Reduce_scatter,
                   ompi_reduce_scatter_f, 7, a6, .which = Collective::kReduceScatter, .send = a0,
                   .receive = a1, .receive_type = Int(a3), .counts = Int(a2), .op = Int(a4),
                   .communicator = Int(a5))
TUTTI_PASSED_ON(reduce_scatter, REDUCE_SCATTER, Reduce_scatter, kReduceScatter, 8, 9)

TUTTI_MANGLINGS_OF(TUTTI_SERVED, mpi_reduce_scatter_block, MPI_REDUCE_SCATTER_BLOCK,
                   MPI_Reduce_scatter_block, ompi_reduce_scatter_block_f, 7, a6,
                   .which = Collective::kReduceScatterBlock, .send = a0, .receive = a1,
                   .receive_count = Int(a2), .receive_type = Int(a3), .op = Int(a4),
                   .communicator = Int(a5))
TUTTI_PASSED_ON(reduce_scatter_block, REDUCE_SCATTER_BLOCK, Reduce_scatter_block,
                kReduceScatterBlock, 8, 9)

TUTTI_MANGLINGS_OF(TUTTI_SERVED, mpi_bcast, MPI_BCAST, MPI_Bcast, ompi_bcast_f, 6, a5,
                   .which = Collective::kBcast, .receive = a0, .receive_count = Int(a1),
                   .receive_type = Int(a2), .root = Int(a3), .communicator = Int(a4))
TUTTI_PASSED_ON(bcast, BCAST, Bcast, kBcast, 7, 8)

TUTTI_MANGLINGS_OF(TUTTI_SERVED, mpi_reduce, MPI_REDUCE, MPI_Reduce, ompi_reduce_f, 8, a7,
                   .which = Collective::kReduce, .send = a0, .receive = a1,
                   .receive_count = Int(a2), .receive_type = Int(a3), .op = Int(a4),
                   .root = Int(a5), .communicator = Int(a6))
TUTTI_PASSED_ON(reduce, REDUCE, Reduce, kReduce, 9, 10)

TUTTI_MANGLINGS_OF(TUTTI_SERVED, mpi_gather, MPI_GATHER, MPI_Gather, ompi_gather_f, 9, a8,
                   .which = Collective::kGather, .send = a0, .send_count = Int(a1),
                   .send_type = Int(a2), .receive = a3, .receive_count = Int(a4),
                   .receive_type = Int(a5), .root = Int(a6), .communicator = Int(a7))
TUTTI_PASSED_ON(gather, GATHER, Gather, kGather, 10, 11)

TUTTI_MANGLINGS_OF(TUTTI_SERVED, mpi_scatter, MPI_SCATTER, MPI_Scatter, ompi_scatter_f, 9, a8,
                   .which = Collective::kScatter, .send = a0, .send_count = Int(a1),
                   .send_type = Int(a2), .receive = a3, .receive_count = Int(a4),
                   .receive_type = Int(a5), .root = Int(a6), .communicator = Int(a7))
TUTTI_PASSED_ON(scatter, SCATTER, Scatter, kScatter, 10, 11)

TUTTI_MANGLINGS_OF(TUTTI_SERVED, mpi_barrier, MPI_BARRIER, MPI_Barrier, ompi_barrier_f, 2, a1,
                   .which = Collective::kBarrier, .communicator = Int(a0))
TUTTI_PASSED_ON(barrier, BARRIER, Barrier, kBarrier, 3, 4)

}  // namespace tutti::mpi::preload

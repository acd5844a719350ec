// The Fortran names of Open MPI that the library takes over. Open MPI's Fortran bindings call PMPI_
// functions, which no preloaded library sees, so each binding is taken over itself. MPICH's call
// MPI_ functions: there interpose.cc suffices.
//
// Model       All names of a binding (names.h) share one implementation; all take the addresses of
//             their arguments.
// Invariant   Where there is no engine, arguments reach the next function of the same name unread.
#include "interface.h"
#include "preload/library.h"
#include "preload/names.h"
#include "preload/next.h"

namespace tutti::mpi::preload {
namespace {

using AlltoallvFunction = void(void* send, const int* send_counts, const int* send_displacements,
                               const int* send_type, void* receive, const int* receive_counts,
                               const int* receive_displacements, const int* receive_type,
                               const int* communicator, int* error);
using AlltoallFunction = void(void* send, const int* send_count, const int* send_type,
                              void* receive, const int* receive_count, const int* receive_type,
                              const int* communicator, int* error);
using IalltoallvFunction = void(void*, const int*, const int*, const int*, void*, const int*,
                                const int*, const int*, const int*, int* request, int* error);
using IalltoallFunction = void(void*, const int*, const int*, void*, const int*, const int*,
                               const int*, int* request, int* error);
using AlltoallvInitFunction = void(void*, const int*, const int*, const int*, void*, const int*,
                                   const int*, const int*, const int*, const int* info,
                                   int* request, int* error);
using AlltoallInitFunction = void(void*, const int*, const int*, void*, const int*, const int*,
                                  const int*, const int* info, int* request, int* error);

void Store(int code, int* error) {
  if (error != nullptr) *error = code;
}

void Alltoallv(Next<AlltoallvFunction>& next, void* send, const int* send_counts,
               const int* send_displacements, const int* send_type, void* receive,
               const int* receive_counts, const int* receive_displacements, const int* receive_type,
               const int* communicator, int* error) {
  if (const Engine* engine = FindEngine()) {
    Store(engine->fortran_alltoallv({send, send_counts, send_displacements, send_type, receive,
                                     receive_counts, receive_displacements, receive_type,
                                     communicator}),
          error);
    return;
  }
  next(send, send_counts, send_displacements, send_type, receive, receive_counts,
       receive_displacements, receive_type, communicator, error);
}

void Alltoall(Next<AlltoallFunction>& next, void* send, const int* send_count, const int* send_type,
              void* receive, const int* receive_count, const int* receive_type,
              const int* communicator, int* error) {
  if (const Engine* engine = FindEngine()) {
    Store(engine->fortran_alltoall(
              {send, send_count, send_type, receive, receive_count, receive_type, communicator}),
          error);
    return;
  }
  next(send, send_count, send_type, receive, receive_count, receive_type, communicator, error);
}

}  // namespace

#define TUTTI_ALLTOALLV(identifier, symbol)                                                     \
  extern "C" void identifier(void* s, const int* sn, const int* sd, const int* st, void* r,     \
                             const int* rn, const int* rd, const int* rt, const int* c, int* e) \
      TUTTI_AS(symbol);                                                                         \
  void identifier(void* s, const int* sn, const int* sd, const int* st, void* r, const int* rn, \
                  const int* rd, const int* rt, const int* c, int* e) {                         \
    static constinit Next<AlltoallvFunction> next{symbol};                                      \
    Alltoallv(next, s, sn, sd, st, r, rn, rd, rt, c, e);                                        \
  }

#define TUTTI_ALLTOALL(identifier, symbol)                                                      \
  extern "C" void identifier(void* s, const int* sn, const int* st, void* r, const int* rn,     \
                             const int* rt, const int* c, int* e) TUTTI_AS(symbol);             \
  void identifier(void* s, const int* sn, const int* st, void* r, const int* rn, const int* rt, \
                  const int* c, int* e) {                                                       \
    static constinit Next<AlltoallFunction> next{symbol};                                       \
    Alltoall(next, s, sn, st, r, rn, rt, c, e);                                                 \
  }

#define TUTTI_IALLTOALLV(identifier, symbol)                                                    \
  extern "C" void identifier(void* s, const int* sn, const int* sd, const int* st, void* r,     \
                             const int* rn, const int* rd, const int* rt, const int* c, int* q, \
                             int* e) TUTTI_AS(symbol);                                          \
  void identifier(void* s, const int* sn, const int* sd, const int* st, void* r, const int* rn, \
                  const int* rd, const int* rt, const int* c, int* q, int* e) {                 \
    static constinit Next<IalltoallvFunction> next{symbol};                                     \
    CountPassedOn(PassedOn::kIalltoallv);                                                       \
    next(s, sn, sd, st, r, rn, rd, rt, c, q, e);                                                \
  }

#define TUTTI_IALLTOALL(identifier, symbol)                                                     \
  extern "C" void identifier(void* s, const int* sn, const int* st, void* r, const int* rn,     \
                             const int* rt, const int* c, int* q, int* e) TUTTI_AS(symbol);     \
  void identifier(void* s, const int* sn, const int* st, void* r, const int* rn, const int* rt, \
                  const int* c, int* q, int* e) {                                               \
    static constinit Next<IalltoallFunction> next{symbol};                                      \
    CountPassedOn(PassedOn::kIalltoall);                                                        \
    next(s, sn, st, r, rn, rt, c, q, e);                                                        \
  }

#define TUTTI_ALLTOALLV_INIT(identifier, symbol)                                                \
  extern "C" void identifier(void* s, const int* sn, const int* sd, const int* st, void* r,     \
                             const int* rn, const int* rd, const int* rt, const int* c,         \
                             const int* i, int* q, int* e) TUTTI_AS(symbol);                    \
  void identifier(void* s, const int* sn, const int* sd, const int* st, void* r, const int* rn, \
                  const int* rd, const int* rt, const int* c, const int* i, int* q, int* e) {   \
    static constinit Next<AlltoallvInitFunction> next{symbol};                                  \
    CountPassedOn(PassedOn::kAlltoallvInit);                                                    \
    next(s, sn, sd, st, r, rn, rd, rt, c, i, q, e);                                             \
  }

#define TUTTI_ALLTOALL_INIT(identifier, symbol)                                                 \
  extern "C" void identifier(void* s, const int* sn, const int* st, void* r, const int* rn,     \
                             const int* rt, const int* c, const int* i, int* q, int* e)         \
      TUTTI_AS(symbol);                                                                         \
  void identifier(void* s, const int* sn, const int* st, void* r, const int* rn, const int* rt, \
                  const int* c, const int* i, int* q, int* e) {                                 \
    static constinit Next<AlltoallInitFunction> next{symbol};                                   \
    CountPassedOn(PassedOn::kAlltoallInit);                                                     \
    next(s, sn, st, r, rn, rt, c, i, q, e);                                                     \
  }

TUTTI_MANGLINGS(TUTTI_ALLTOALLV, mpi_alltoallv, MPI_ALLTOALLV, MPI_Alltoallv, ompi_alltoallv_f)
TUTTI_MANGLINGS(TUTTI_ALLTOALL, mpi_alltoall, MPI_ALLTOALL, MPI_Alltoall, ompi_alltoall_f)
TUTTI_MANGLINGS(TUTTI_IALLTOALLV, mpi_ialltoallv, MPI_IALLTOALLV, MPI_Ialltoallv, ompi_ialltoallv_f)
TUTTI_MANGLINGS(TUTTI_IALLTOALL, mpi_ialltoall, MPI_IALLTOALL, MPI_Ialltoall, ompi_ialltoall_f)
TUTTI_MANGLINGS(TUTTI_ALLTOALLV_INIT, mpix_alltoallv_init, MPIX_ALLTOALLV_INIT, MPIX_Alltoallv_init,
                ompix_alltoallv_init_f)
TUTTI_MANGLINGS(TUTTI_ALLTOALL_INIT, mpix_alltoall_init, MPIX_ALLTOALL_INIT, MPIX_Alltoall_init,
                ompix_alltoall_init_f)

}  // namespace tutti::mpi::preload

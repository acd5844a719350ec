// The C functions of MPI that the library takes over. The argument lists are those of the MPI
// standard with every handle as wide as a pointer (interface.h).
//
// Invariant   Where there is no engine, arguments reach the next function unread.
#include "interface.h"
#include "preload/library.h"
#include "preload/names.h"
#include "preload/next.h"

namespace tutti::mpi::preload {
extern "C" {

int CInit(int* argc, char*** argv) TUTTI_AS("MPI_Init");
int CInitThread(int* argc, char*** argv, int required, int* provided) TUTTI_AS("MPI_Init_thread");
int CAlltoallv(const void* send, const int* send_counts, const int* send_displacements,
               Handle send_type, void* receive, const int* receive_counts,
               const int* receive_displacements, Handle receive_type, Handle communicator)
    TUTTI_AS("MPI_Alltoallv");
int CAlltoall(const void* send, int send_count, Handle send_type, void* receive, int receive_count,
              Handle receive_type, Handle communicator) TUTTI_AS("MPI_Alltoall");
int CIalltoallv(const void* send, const int* send_counts, const int* send_displacements,
                Handle send_type, void* receive, const int* receive_counts,
                const int* receive_displacements, Handle receive_type, Handle communicator,
                void* request) TUTTI_AS("MPI_Ialltoallv");
int CIalltoall(const void* send, int send_count, Handle send_type, void* receive, int receive_count,
               Handle receive_type, Handle communicator, void* request) TUTTI_AS("MPI_Ialltoall");
int CAlltoallvInit(const void* send, const int* send_counts, const int* send_displacements,
                   Handle send_type, void* receive, const int* receive_counts,
                   const int* receive_displacements, Handle receive_type, Handle communicator,
                   Handle info, void* request) TUTTI_AS(TUTTI_PERSISTENT_PREFIX "Alltoallv_init");
int CAlltoallInit(const void* send, int send_count, Handle send_type, void* receive,
                  int receive_count, Handle receive_type, Handle communicator, Handle info,
                  void* request) TUTTI_AS(TUTTI_PERSISTENT_PREFIX "Alltoall_init");

int CInit(int* argc, char*** argv) {
  static constinit Next<int(int*, char***)> next{"MPI_Init"};
  const int code = next(argc, argv);
  FindEngine();
  return code;
}

int CInitThread(int* argc, char*** argv, int required, int* provided) {
  static constinit Next<int(int*, char***, int, int*)> next{"MPI_Init_thread"};
  const int code = next(argc, argv, required, provided);
  FindEngine();
  return code;
}

int CAlltoallv(const void* send, const int* send_counts, const int* send_displacements,
               Handle send_type, void* receive, const int* receive_counts,
               const int* receive_displacements, Handle receive_type, Handle communicator) {
  static constinit Next<decltype(CAlltoallv)> next{"MPI_Alltoallv"};
  if (const Engine* engine = FindEngine()) {
    return engine->alltoallv({send, send_counts, send_displacements, send_type, receive,
                              receive_counts, receive_displacements, receive_type, communicator});
  }
  return next(send, send_counts, send_displacements, send_type, receive, receive_counts,
              receive_displacements, receive_type, communicator);
}

int CAlltoall(const void* send, int send_count, Handle send_type, void* receive, int receive_count,
              Handle receive_type, Handle communicator) {
  static constinit Next<decltype(CAlltoall)> next{"MPI_Alltoall"};
  if (const Engine* engine = FindEngine()) {
    return engine->alltoall(
        {send, send_count, send_type, receive, receive_count, receive_type, communicator});
  }
  return next(send, send_count, send_type, receive, receive_count, receive_type, communicator);
}

int CIalltoallv(const void* send, const int* send_counts, const int* send_displacements,
                Handle send_type, void* receive, const int* receive_counts,
                const int* receive_displacements, Handle receive_type, Handle communicator,
                void* request) {
  static constinit Next<decltype(CIalltoallv)> next{"MPI_Ialltoallv"};
  CountPassedOn(PassedOn::kIalltoallv);
  return next(send, send_counts, send_displacements, send_type, receive, receive_counts,
              receive_displacements, receive_type, communicator, request);
}

int CIalltoall(const void* send, int send_count, Handle send_type, void* receive, int receive_count,
               Handle receive_type, Handle communicator, void* request) {
  static constinit Next<decltype(CIalltoall)> next{"MPI_Ialltoall"};
  CountPassedOn(PassedOn::kIalltoall);
  return next(send, send_count, send_type, receive, receive_count, receive_type, communicator,
              request);
}

int CAlltoallvInit(const void* send, const int* send_counts, const int* send_displacements,
                   Handle send_type, void* receive, const int* receive_counts,
                   const int* receive_displacements, Handle receive_type, Handle communicator,
                   Handle info, void* request) {
  static constinit Next<decltype(CAlltoallvInit)> next{TUTTI_PERSISTENT_PREFIX "Alltoallv_init"};
  CountPassedOn(PassedOn::kAlltoallvInit);
  return next(send, send_counts, send_displacements, send_type, receive, receive_counts,
              receive_displacements, receive_type, communicator, info, request);
}

int CAlltoallInit(const void* send, int send_count, Handle send_type, void* receive,
                  int receive_count, Handle receive_type, Handle communicator, Handle info,
                  void* request) {
  static constinit Next<decltype(CAlltoallInit)> next{TUTTI_PERSISTENT_PREFIX "Alltoall_init"};
  CountPassedOn(PassedOn::kAlltoallInit);
  return next(send, send_count, send_type, receive, receive_count, receive_type, communicator, info,
              request);
}

}  // extern "C"
}  // namespace tutti::mpi::preload

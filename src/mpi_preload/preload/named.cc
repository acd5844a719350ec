// The functions of tutti/mpi/tutti_mpi.h for programs that link this library.
//
// Invariant   Where there is no engine, an exchange by any name is the native algorithm, and one
//             that is set up beforehand is refused.
#include "interface.h"
#include "preload/library.h"
#include "preload/names.h"
#include "preload/next.h"

namespace tutti::mpi::preload {
namespace {

// MPI_ERR_OTHER, which both MPIs must not be asked for here.
#if defined(TUTTI_MPI_OPENMPI)
constexpr int kRefused = 16;
#else
constexpr int kRefused = 15;
#endif

}  // namespace

extern "C" {

int NamedAlltoallv(const void* send, const int* send_counts, const int* send_displacements,
                   Handle send_type, void* receive, const int* receive_counts,
                   const int* receive_displacements, Handle receive_type, Handle communicator,
                   const char* algorithm) TUTTI_AS("tutti_alltoallv");
int NamedAlltoall(const void* send, int send_count, Handle send_type, void* receive,
                  int receive_count, Handle receive_type, Handle communicator,
                  const char* algorithm) TUTTI_AS("tutti_alltoall");
int NamedAlltoallvInit(const void* send, const int* send_counts, const int* send_displacements,
                       Handle send_type, void* receive, const int* receive_counts,
                       const int* receive_displacements, Handle receive_type, Handle communicator,
                       const char* algorithm, void** exchange) TUTTI_AS("tutti_alltoallv_init");
int NamedStart(void* exchange) TUTTI_AS("tutti_start");
int NamedWait(void* exchange) TUTTI_AS("tutti_wait");
int NamedFree(void** exchange) TUTTI_AS("tutti_free");
const char* NamedMessage() TUTTI_AS("tutti_mpi_message");

int NamedAlltoallv(const void* send, const int* send_counts, const int* send_displacements,
                   Handle send_type, void* receive, const int* receive_counts,
                   const int* receive_displacements, Handle receive_type, Handle communicator,
                   const char* algorithm) {
  const AlltoallvCall call{send,        send_counts,    send_displacements,    send_type,
                           receive,     receive_counts, receive_displacements, receive_type,
                           communicator};
  const Engine* engine = FindEngine();
  return engine != nullptr ? engine->named.alltoallv(call, algorithm) : NextAlltoallv(call);
}

int NamedAlltoall(const void* send, int send_count, Handle send_type, void* receive,
                  int receive_count, Handle receive_type, Handle communicator,
                  const char* algorithm) {
  const AlltoallCall call{send,          send_count,   send_type,   receive,
                          receive_count, receive_type, communicator};
  const Engine* engine = FindEngine();
  return engine != nullptr ? engine->named.alltoall(call, algorithm) : NextAlltoall(call);
}

int NamedAlltoallvInit(const void* send, const int* send_counts, const int* send_displacements,
                       Handle send_type, void* receive, const int* receive_counts,
                       const int* receive_displacements, Handle receive_type, Handle communicator,
                       const char* algorithm, void** exchange) {
  const Engine* engine = FindEngine();
  if (engine == nullptr) {
    *exchange = nullptr;
    return kRefused;
  }
  return engine->named.alltoallv_init(
      {send, send_counts, send_displacements, send_type, receive, receive_counts,
       receive_displacements, receive_type, communicator},
      algorithm, exchange);
}

int NamedStart(void* exchange) {
  const Engine* engine = FindEngine();
  return engine != nullptr ? engine->named.start(exchange) : kRefused;
}

int NamedWait(void* exchange) {
  const Engine* engine = FindEngine();
  return engine != nullptr ? engine->named.wait(exchange) : kRefused;
}

int NamedFree(void** exchange) {
  const Engine* engine = FindEngine();
  return engine != nullptr ? engine->named.free(exchange) : kRefused;
}

const char* NamedMessage() {
  const Engine* engine = FindEngine();
  return engine != nullptr ? engine->named.message() : "";
}

}  // extern "C"
}  // namespace tutti::mpi::preload

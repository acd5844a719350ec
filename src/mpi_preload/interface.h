// The seam between the two halves of the drop-in library.
//   preload/  libtutti_mpi.so: the names a program calls. Knows no MPI: it is loaded into every
//             process that inherits LD_PRELOAD, into shells and into programs of another MPI, and
//             must change nothing there. Needs the C library and nothing else.
//   engine/   libtutti_mpi_engine.so: the algorithms, compiled for one MPI. Loaded by the first
//             half when that MPI has been found in the process, never before; its MPI symbols are
//             resolved from what is already loaded, so it can bring no second MPI in.
//
// Model       A handle travels as an integer as wide as a pointer: it is one in Open MPI, and
//             MPICH's int is its low half. A call that is passed on unread so survives whichever
//             MPI it belongs to.
// Invariant   Both halves are of one version, kInterfaceVersion; another engine is not used.
#pragma once

#include <atomic>
#include <cstdint>

namespace tutti::mpi::preload {

constexpr int kInterfaceVersion = 3;

using Handle = intptr_t;

struct AlltoallvCall {
  const void* send;
  const int* send_counts;
  const int* send_displacements;
  Handle send_type;
  void* receive;
  const int* receive_counts;
  const int* receive_displacements;
  Handle receive_type;
  Handle communicator;
};

struct AlltoallCall {
  const void* send;
  int send_count;
  Handle send_type;
  void* receive;
  int receive_count;
  Handle receive_type;
  Handle communicator;
};

// The same from Fortran, where every argument is an address, and handles are integers.
struct FortranAlltoallvCall {
  void* send;
  const int* send_counts;
  const int* send_displacements;
  const int* send_type;
  void* receive;
  const int* receive_counts;
  const int* receive_displacements;
  const int* receive_type;
  const int* communicator;
};

struct FortranAlltoallCall {
  void* send;
  const int* send_count;
  const int* send_type;
  void* receive;
  const int* receive_count;
  const int* receive_type;
  const int* communicator;
};

// The collectives beside the all-to-alls.
enum class Collective {
  kAllreduce,
  kAllgather,
  kAllgatherv,
  kReduceScatter,
  kReduceScatterBlock,
  kBcast,
  kReduce,
  kGather,
  kScatter,
  kBarrier
};
constexpr int kNumCollectives = 10;

// A block for or of each rank, by a root.
constexpr bool GivesBlocks(Collective which) {
  return which == Collective::kGather || which == Collective::kScatter;
}
// Of a collective with a root: count and type that this rank, the root or not, must give are those of the sending side; else
// of the receiving one.
constexpr bool CountsWhereItSends(Collective which, bool is_root) {
  return GivesBlocks(which) && (which == Collective::kScatter) == is_root;
}

// The arguments of any of them; those that it does not have are not read. Where the MPI standard
// has one count and one type for both sides, or one buffer, they are those of the receiving side.
struct CollectiveCall {
  Collective which;
  const void* send = nullptr;
  int send_count = 0;
  Handle send_type = 0;
  void* receive = nullptr;
  int receive_count = 0;
  Handle receive_type = 0;
  const int* counts = nullptr;         // in place of receive_count: by rank
  const int* displacements = nullptr;  // of Allgatherv
  Handle op = 0;
  int root = 0;
  Handle communicator = 0;
};

// Which calls of one collective with a root are the next function's: on this communicator those of 1 to so many elements of
// this type, on the side that counts on this rank.
struct LeftCalls {
  Handle communicator = 0;
  Handle type = 0;
  int max_count = 0;
  int rank = 0;
  // How many communicators have been freed, and had been then: with another number this says nothing. Null: nor does it now.
  const std::atomic<uint64_t>* num_freed = nullptr;
  uint64_t as_of = 0;
};

struct FortranCollectiveCall {
  Collective which;
  void* send = nullptr;
  const int* send_count = nullptr;
  const int* send_type = nullptr;
  void* receive = nullptr;
  const int* receive_count = nullptr;
  const int* receive_type = nullptr;
  const int* counts = nullptr;
  const int* displacements = nullptr;
  const int* op = nullptr;
  const int* root = nullptr;
  const int* communicator = nullptr;
};

// The functions of tutti/mpi/tutti_mpi.h, which programs call by name.
struct NamedCalls {
  int (*alltoallv)(const AlltoallvCall& call, const char* algorithm);
  int (*alltoall)(const AlltoallCall& call, const char* algorithm);
  int (*alltoallv_init)(const AlltoallvCall& call, const char* algorithm, void** exchange);
  int (*start)(void* exchange);
  int (*wait)(void* exchange);
  int (*free)(void** exchange);
  const char* (*message)();
};

// Calls that are counted and passed on.
enum class PassedOn {
  kIalltoallv,
  kIalltoall,
  kAlltoallvInit,
  kAlltoallInit,
  kFirstNonblocking,                                      // of each Collective, in their order
  kFirstPersistent = kFirstNonblocking + kNumCollectives  // likewise
};
constexpr int kNumPassedOn = static_cast<int>(PassedOn::kFirstPersistent) + kNumCollectives;

constexpr PassedOn NonblockingOf(Collective which) {
  return static_cast<PassedOn>(static_cast<int>(PassedOn::kFirstNonblocking) +
                               static_cast<int>(which));
}
constexpr PassedOn PersistentOf(Collective which) {
  return static_cast<PassedOn>(static_cast<int>(PassedOn::kFirstPersistent) +
                               static_cast<int>(which));
}

// What the engine asks of the first half: the next function of that name, which is the MPI
// library's or that of another tool before it.
struct NextCalls {
  int (*alltoallv)(const AlltoallvCall& call);
  int (*alltoall)(const AlltoallCall& call);
  int (*collective)(const CollectiveCall& call);
  const char* mpi_version;  // one line, as the MPI library names itself
};

struct Engine {
  int version;
  // After MPI_Init: says what of the environment is ignored, sets up the report. Local.
  void (*start)(const NextCalls& next);
  int (*alltoallv)(const AlltoallvCall& call);
  int (*alltoall)(const AlltoallCall& call);
  int (*fortran_alltoallv)(const FortranAlltoallvCall& call);
  int (*fortran_alltoall)(const FortranAlltoallCall& call);
  int (*collective)(const CollectiveCall& call);
  // Whether `collective` would only pass on this call of a collective with a root (of one side: the receiving one). What is
  // known of others like it is filled in.
  bool (*leaves)(Collective which, Handle communicator, int root, int send_count, Handle send_type,
                 int receive_count, Handle receive_type, LeftCalls* others);
  int (*fortran_collective)(const FortranCollectiveCall& call);
  void (*count_passed_on)(PassedOn call);
  NamedCalls named;
};

// The one symbol of the engine's library.
constexpr const char* kEngineSymbol = "TuttiMpiEngine";
using EngineFunction = const Engine*();

}  // namespace tutti::mpi::preload

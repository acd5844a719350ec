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

#include <cstdint>

namespace tutti::mpi::preload {

constexpr int kInterfaceVersion = 1;

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
enum class PassedOn { kIalltoallv, kIalltoall, kAlltoallvInit, kAlltoallInit };
constexpr int kNumPassedOn = 4;

// What the engine asks of the first half: the next function of that name, which is the MPI
// library's or that of another tool before it.
struct NextCalls {
  int (*alltoallv)(const AlltoallvCall& call);
  int (*alltoall)(const AlltoallCall& call);
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
  void (*count_passed_on)(PassedOn call);
  NamedCalls named;
};

// The one symbol of the engine's library.
constexpr const char* kEngineSymbol = "TuttiMpiEngine";
using EngineFunction = const Engine*();

}  // namespace tutti::mpi::preload

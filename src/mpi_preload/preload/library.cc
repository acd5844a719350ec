#include "preload/library.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "preload/next.h"

namespace tutti::mpi::preload {
namespace {

enum class Family { kOpenMpi, kMpich, kUnknown };

#if defined(TUTTI_MPI_OPENMPI)
constexpr Family kOurFamily = Family::kOpenMpi;
#else
constexpr Family kOurFamily = Family::kMpich;
#endif

constexpr const char* NameOf(Family family) {
  return family == Family::kOpenMpi ? "Open MPI" : "MPICH";
}

constexpr const char* LibraryOf(Family family) {
  return family == Family::kOpenMpi ? "libtutti_mpi.so" : "libtutti_mpi_mpich.so";
}

// More than the MPI_MAX_LIBRARY_VERSION_STRING of any MPI.
constexpr int kVersionRoom = 16384;

// The first line that the MPI library says of itself, shortened.
constexpr int kVersionLine = 96;
char version_line[kVersionLine] = "an unknown MPI";

// Those that share MPICH's binary interface call themselves one of these.
bool IsMpichAlike(const char* version) {
  for (const char* name : {"MPICH", "MVAPICH", "Intel(R) MPI", "CRAY"}) {
    if (std::strstr(version, name) != nullptr) return true;
  }
  return false;
}

// The one MPI function with no handle among its arguments that says whose it is; it may be called
// before MPI_Init.
Family FamilyOfThisProcess() {
  using GetVersion = int(char*, int*);
  void* function = FindNext("MPI_Get_library_version");
  if (function == nullptr) return Family::kUnknown;
  static char version[kVersionRoom];
  int length = 0;
  reinterpret_cast<GetVersion*>(function)(version, &length);
  version[kVersionRoom - 1] = '\0';
  const bool mpich = IsMpichAlike(version);
  int at = 0;
  for (const char* from = version; *from != '\0' && *from != '\n' && *from != ','; ++from) {
    if (at < kVersionLine - 1) version_line[at++] = *from == '\t' ? ' ' : *from;
  }
  version_line[at] = '\0';
  if (FindObject("ompi_mpi_comm_world") != nullptr) return Family::kOpenMpi;
  return mpich ? Family::kMpich : Family::kUnknown;
}

// MPI_COMM_WORLD of either binary interface.
Handle WorldOf(Family family) {
  constexpr Handle kMpichWorld = 0x44000000;
  return family == Family::kOpenMpi ? reinterpret_cast<Handle>(FindObject("ompi_mpi_comm_world"))
                                    : kMpichWorld;
}

// Whether this process is the one to say what concerns all of them.
bool ShouldReport(Family family) {
  static constinit Next<int(int*)> initialized{"MPI_Initialized"};
  static constinit Next<int(int*)> finalized{"MPI_Finalized"};
  static constinit Next<int(Handle, int*)> comm_rank{"MPI_Comm_rank"};
  int began = 0;
  int ended = 0;
  initialized(&began);
  finalized(&ended);
  if (family == Family::kUnknown || began == 0 || ended != 0) return true;
  int rank = 0;
  comm_rank(WorldOf(family), &rank);
  return rank == 0;
}

// An MPI that a module brought in for itself alone becomes visible to the engine.
void MakeMpiVisible() {
  Dl_info mpi;
  if (dladdr(FindNext("PMPI_Get_library_version"), &mpi) == 0 || mpi.dli_fname == nullptr) return;
  dlopen(mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
}

const Engine* LoadEngine() {
  MakeMpiVisible();
  void* library = dlopen(TUTTI_ENGINE, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    if (ShouldReport(kOurFamily)) {
      std::fprintf(stderr, "%s: cannot load its engine, and is disabled: %s\n", TUTTI_LIBRARY,
                   dlerror());
    }
    return nullptr;
  }
  auto* function = reinterpret_cast<EngineFunction*>(dlsym(library, kEngineSymbol));
  const Engine* engine = function == nullptr ? nullptr : function();
  if (engine == nullptr || engine->version != kInterfaceVersion) {
    if (ShouldReport(kOurFamily)) {
      std::fprintf(stderr, "%s: the %s beside it is of another version; it is disabled\n",
                   TUTTI_LIBRARY, TUTTI_ENGINE);
    }
    return nullptr;
  }
  static const NextCalls next{NextAlltoallv, NextAlltoall, NextCollective, version_line};
  engine->start(next);
  return engine;
}

const Engine* Decide() {
  const Family family = FamilyOfThisProcess();
  if (family == kOurFamily) return LoadEngine();
  if (ShouldReport(family)) {
    if (family == Family::kUnknown) {
      std::fprintf(stderr, "%s: is for %s, but the program runs with %s; it is disabled\n",
                   TUTTI_LIBRARY, NameOf(kOurFamily), version_line);
    } else {
      std::fprintf(stderr,
                   "%s: is for %s, but the program runs with %s; it is disabled: preload %s\n",
                   TUTTI_LIBRARY, NameOf(kOurFamily), version_line, LibraryOf(family));
    }
  }
  return nullptr;
}

std::atomic<bool> decided{false};
const Engine* engine_found = nullptr;
pthread_once_t once = PTHREAD_ONCE_INIT;

}  // namespace

int NextAlltoallv(const AlltoallvCall& call) {
  static constinit Next<int(const void*, const int*, const int*, Handle, void*, const int*,
                            const int*, Handle, Handle)>
      next{"MPI_Alltoallv"};
  return next(call.send, call.send_counts, call.send_displacements, call.send_type, call.receive,
              call.receive_counts, call.receive_displacements, call.receive_type,
              call.communicator);
}

int NextAlltoall(const AlltoallCall& call) {
  static constinit Next<int(const void*, int, Handle, void*, int, Handle, Handle)> next{
      "MPI_Alltoall"};
  return next(call.send, call.send_count, call.send_type, call.receive, call.receive_count,
              call.receive_type, call.communicator);
}

const Engine* FindEngine() {
  if (!decided.load(std::memory_order_acquire)) {
    pthread_once(&once, [] {
      engine_found = Decide();
      decided.store(true, std::memory_order_release);
    });
  }
  return engine_found;
}

}  // namespace tutti::mpi::preload

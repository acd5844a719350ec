// Settings: what the environment of the program asks of the library.
//
// Errors      A value that cannot be read is as if it were not set; `ignored` says so, a line per
//             variable: what was given, and what is accepted.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "interface.h"
#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi::preload {

// Who reports when the program ends.
enum class Report { kNobody, kRankZero, kEveryRank };

inline constexpr int64_t kNoLimit = -1;

// What serves calls of a collective beside the all-to-alls.
enum class Service { kNative, kAuto, kShared };
inline constexpr const char* kServiceNames[] = {"native", "auto", "shared"};

using Services = std::array<Service, kNumCollectives>;  // by Collective

// Names of a Collective: its variable, and its name in MPI.
struct CollectiveName {
  const char* variable;  // "TUTTI_ALLREDUCE"
  const char* function;  // "MPI_Allreduce"
};
const CollectiveName& NameOf(Collective which);

struct Settings {
  alltoallv::Algorithm algorithm;      // TUTTI_ALLTOALLV
  Services services = AllAuto();       // TUTTI_ALLREDUCE and so on
  bool reorders = false;               // TUTTI_REORDER
  Report report = Report::kNobody;     // TUTTI_VERBOSE
  bool check_counts = false;           // TUTTI_CHECK
  int64_t temporary_limit = kNoLimit;  // TUTTI_TEMPORARY_LIMIT, bytes per rank
  bool host_buffers = false;           // TUTTI_HOST_BUFFERS
  bool memory_is_limited = false;      // by ulimit; not of the environment
  std::vector<std::string> ignored;

  static constexpr Services AllAuto() {
    Services services{};
    services.fill(Service::kAuto);
    return services;
  }
};

using EnvironmentLookup = const char*(const char* name);

Settings ReadSettings(EnvironmentLookup* environment);

}  // namespace tutti::mpi::preload

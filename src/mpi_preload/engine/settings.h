// Settings: what the environment of the program asks of the library.
//
// Errors      A value that cannot be read is as if it were not set; `ignored` says so, a line per
//             variable: what was given, and what is accepted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/alltoallv/algorithm.h"

namespace tutti::mpi::preload {

// Who reports when the program ends.
enum class Report { kNobody, kRankZero, kEveryRank };

inline constexpr int64_t kNoLimit = -1;

struct Settings {
  alltoallv::Algorithm algorithm;      // TUTTI_ALLTOALLV
  Report report = Report::kNobody;     // TUTTI_VERBOSE
  bool check_counts = false;           // TUTTI_CHECK
  int64_t temporary_limit = kNoLimit;  // TUTTI_TEMPORARY_LIMIT, bytes per rank
  bool host_buffers = false;           // TUTTI_HOST_BUFFERS
  bool memory_is_limited = false;      // by ulimit; not of the environment
  std::vector<std::string> ignored;
};

using EnvironmentLookup = const char*(const char* name);

Settings ReadSettings(EnvironmentLookup* environment);

}  // namespace tutti::mpi::preload

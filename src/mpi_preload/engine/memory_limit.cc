#include "engine/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>

namespace tutti::mpi::preload {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Blocks of every rank that one rank may hold at once.
int TimesAllBlocks(alltoallv::Method method) {
  switch (method) {
    case alltoallv::Method::kMpi:
    case alltoallv::Method::kLinear:
    case alltoallv::Method::kPairwise:
    case alltoallv::Method::kXor:
    case alltoallv::Method::kSpreadOut:
    case alltoallv::Method::kScattered:
      return 0;
    case alltoallv::Method::kTwoPhaseBruck:
    case alltoallv::Method::kTuna:
      return 1;
    case alltoallv::Method::kAuto:
    case alltoallv::Method::kPaddedBruck:
    case alltoallv::Method::kCoalesced:
    case alltoallv::Method::kStaggered:
    case alltoallv::Method::kMultilevel:
      return 2;
    case alltoallv::Method::kShared:
    case alltoallv::Method::kSharedCoalesced:
      return 4;
  }
  return 2;
}

bool IsFinite(__rlimit_resource resource, int64_t* bytes) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return false;
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > static_cast<uint64_t>(kUnlimited))
    return false;
  *bytes = static_cast<int64_t>(limit.rlim_cur);
  return true;
}

// Half of what this process may still take.
int64_t RoomLeft() {
  int64_t address_space = kUnlimited;
  int64_t data = kUnlimited;
  const bool is_limited = IsFinite(RLIMIT_AS, &address_space);
  if (!IsFinite(RLIMIT_DATA, &data) && !is_limited) return kUnlimited;
  // Pages: all, resident, shared, text, libraries, data.
  long long pages[6] = {};
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lld %lld %lld %lld %lld %lld", &pages[0], &pages[1], &pages[2],
                    &pages[3], &pages[4], &pages[5]) != 6) {
      pages[0] = pages[5] = 0;
    }
    std::fclose(file);
  }
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t left = std::min(address_space - pages[0] * page, data - pages[5] * page);
  return std::max<int64_t>(left / 2, 0);
}

}  // namespace

bool ProcessHasMemoryLimit() {
  int64_t bytes = 0;
  return IsFinite(RLIMIT_AS, &bytes) || IsFinite(RLIMIT_DATA, &bytes);
}

int ExceedsLimit(MPI_Comm communicator, Agreement& agreement, int64_t largest_block,
                 int64_t packed_bytes, bool* exceeds) {
  const int64_t room = agreement.memory_is_limited ? RoomLeft() : kUnlimited;
  int64_t most[] = {largest_block, packed_bytes, -room};
  const int error = PMPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_INT64_T, MPI_MAX, communicator);
  if (error != MPI_SUCCESS) return error;
  // In floating point, which cannot overflow: the limit is no exact figure.
  const double needed =
      static_cast<double>(most[0]) * agreement.size * TimesAllBlocks(agreement.algorithm.method) +
      static_cast<double>(most[1]);
  const bool limit_holds = agreement.temporary_limit == kNoLimit ||
                           needed <= static_cast<double>(agreement.temporary_limit);
  *exceeds =
      !limit_holds || (needed > agreement.granted_bytes && needed > static_cast<double>(-most[2]));
  if (!*exceeds) agreement.granted_bytes = std::max(agreement.granted_bytes, needed);
  return MPI_SUCCESS;
}

}  // namespace tutti::mpi::preload

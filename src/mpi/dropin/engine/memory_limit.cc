#include "dropin/engine/memory_limit.h"

namespace tutti::mpi::dropin {
namespace {

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
  }
  return 2;
}

}  // namespace

int ExceedsLimit(MPI_Comm communicator, const Agreement& agreement, std::int64_t largest_block,
                 std::int64_t packed_bytes, bool* exceeds) {
  std::int64_t most[] = {largest_block, packed_bytes};
  const int error = PMPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT64_T, MPI_MAX, communicator);
  // In floating point, which cannot overflow: the limit is no exact figure.
  const double needed =
      static_cast<double>(most[0]) * agreement.size * TimesAllBlocks(agreement.algorithm.method) +
      static_cast<double>(most[1]);
  *exceeds = needed > static_cast<double>(agreement.temporary_limit);
  return error;
}

}  // namespace tutti::mpi::dropin

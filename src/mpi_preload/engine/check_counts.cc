#include "engine/check_counts.h"

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace tutti::mpi::preload {
namespace {

struct Mismatch {
  int64_t sender;
  int64_t receiver;
  int64_t sent;
  int64_t expected;
};

// ", 4 and 2 of MPI_COMM_WORLD" where that says more than ranks of the communicator do.
std::string InTheWorld(MPI_Comm communicator, const Mismatch& mismatch) {
  MPI_Group here = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  const int ranks[] = {static_cast<int>(mismatch.sender), static_cast<int>(mismatch.receiver)};
  int in_world[] = {MPI_UNDEFINED, MPI_UNDEFINED};
  if (PMPI_Comm_group(communicator, &here) == MPI_SUCCESS &&
      PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
    PMPI_Group_translate_ranks(here, 2, ranks, world, in_world);
  }
  for (MPI_Group* group : {&here, &world}) {
    if (*group != MPI_GROUP_NULL) PMPI_Group_free(group);
  }
  // Ranks of a world that another spawned, or was spawned by, have no number in this one.
  const bool unknown = in_world[0] == MPI_UNDEFINED || in_world[1] == MPI_UNDEFINED;
  if (unknown || (in_world[0] == ranks[0] && in_world[1] == ranks[1])) return "";
  return ", " + std::to_string(in_world[0]) + " and " + std::to_string(in_world[1]) +
         " of MPI_COMM_WORLD";
}

void Say(const char* function, MPI_Comm communicator, int size, const Mismatch& first,
         int64_t all) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  PMPI_Comm_get_name(communicator, name, &length);
  std::fprintf(stderr,
               "tutti: %s: counts do not match: rank %lld sends %lld bytes to rank %lld, which "
               "expects %lld (ranks of %s of %d ranks%s; %lld such pair%s)\n",
               function, static_cast<long long>(first.sender), static_cast<long long>(first.sent),
               static_cast<long long>(first.receiver), static_cast<long long>(first.expected),
               length == 0 ? "an unnamed communicator" : name, size,
               InTheWorld(communicator, first).c_str(), static_cast<long long>(all),
               all == 1 ? "" : "s");
}

}  // namespace

int CheckCounts(const char* function, MPI_Comm communicator, const Agreement& agreement,
                std::span<const int64_t> send_bytes, std::span<const int64_t> receive_bytes) {
  const auto size = static_cast<size_t>(agreement.size);
  std::vector<int64_t> coming(size);
  int error =
      PMPI_Alltoall(send_bytes.data(), 1, MPI_INT64_T, coming.data(), 1, MPI_INT64_T, communicator);
  if (error != MPI_SUCCESS) return error;

  int64_t mismatches = 0;
  Mismatch first{agreement.size, agreement.rank, 0, 0};
  for (size_t sender = size; sender-- > 0;) {
    if (coming[sender] == receive_bytes[sender]) continue;
    ++mismatches;
    first.sender = static_cast<int64_t>(sender);
    first.sent = coming[sender];
    first.expected = receive_bytes[sender];
  }
  // Who speaks: the lowest rank that found one.
  int64_t found_by = mismatches > 0 ? agreement.rank : agreement.size;
  error = PMPI_Allreduce(MPI_IN_PLACE, &found_by, 1, MPI_INT64_T, MPI_MIN, communicator);
  if (error != MPI_SUCCESS || found_by == agreement.size) return error;

  error = PMPI_Allreduce(MPI_IN_PLACE, &mismatches, 1, MPI_INT64_T, MPI_SUM, communicator);
  if (error == MPI_SUCCESS && found_by == agreement.rank) {
    Say(function, communicator, agreement.size, first, mismatches);
  }
  // No rank reaches its error handler, which may end the job, before the message is out.
  if (error == MPI_SUCCESS) error = PMPI_Barrier(communicator);
  if (error != MPI_SUCCESS) return error;
  PMPI_Comm_call_errhandler(communicator, MPI_ERR_TRUNCATE);
  return MPI_ERR_TRUNCATE;
}

}  // namespace tutti::mpi::preload

#include "dropin/engine/agreement.h"

#include <memory>
#include <mutex>

namespace tutti::mpi::dropin {
namespace {

int DeleteAgreement(MPI_Comm /*communicator*/, int /*key*/, void* value, void* /*extra*/) {
  delete static_cast<Agreement*>(value);
  return MPI_SUCCESS;
}

// The key of the attribute, made once a process; MPI_KEYVAL_INVALID before MPI runs.
int AgreementKey() {
  static std::mutex mutex;
  static int key = MPI_KEYVAL_INVALID;
  const std::scoped_lock lock(mutex);
  if (key != MPI_KEYVAL_INVALID) return key;
  int initialized = 0;
  PMPI_Initialized(&initialized);
  if (initialized != 0) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &DeleteAgreement, &key, nullptr);
  }
  return key;
}

bool IsRunning() {
  int initialized = 0;
  int finalized = 0;
  PMPI_Initialized(&initialized);
  PMPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

int MakeAgreement(MPI_Comm communicator, int key, const Agreement& proposed,
                  Agreement** agreement) {
  auto made = std::make_unique<Agreement>(proposed);
  int is_inter = 0;
  int error = PMPI_Comm_test_inter(communicator, &is_inter);
  if (error != MPI_SUCCESS) return error;
  made->served = is_inter == 0;
  if (made->served) {
    error = PMPI_Comm_rank(communicator, &made->rank);
    if (error == MPI_SUCCESS) error = PMPI_Comm_size(communicator, &made->size);
    std::int64_t words[] = {static_cast<std::int64_t>(made->algorithm.method),
                            made->algorithm.radix,
                            made->algorithm.block_count,
                            made->check_counts ? 1 : 0,
                            made->temporary_limit,
                            made->reports ? 1 : 0,
                            made->memory_is_limited ? 1 : 0};
    if (error == MPI_SUCCESS) {
      error = PMPI_Bcast(words, 7, MPI_INT64_T, 0, communicator);
    }
    if (error != MPI_SUCCESS) return error;
    made->algorithm = {.method = static_cast<alltoallv::Method>(words[0]),
                       .radix = static_cast<int>(words[1]),
                       .block_count = static_cast<int>(words[2])};
    made->check_counts = words[3] != 0;
    made->temporary_limit = words[4];
    made->reports = words[5] != 0;
    made->memory_is_limited = words[6] != 0;
  }
  error = PMPI_Comm_set_attr(communicator, key, made.get());
  if (error == MPI_SUCCESS) *agreement = made.release();
  return error;
}

}  // namespace

int Agree(MPI_Comm communicator, Agreement (*propose)(), Agreement** agreement) {
  *agreement = nullptr;
  if (communicator == MPI_COMM_NULL || !IsRunning()) return MPI_SUCCESS;
  const int key = AgreementKey();
  int found = 0;
  const int error = PMPI_Comm_get_attr(communicator, key, static_cast<void*>(agreement), &found);
  if (error != MPI_SUCCESS || found != 0) return error;
  return MakeAgreement(communicator, key, propose(), agreement);
}

}  // namespace tutti::mpi::dropin

#include "engine/agreement.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>

namespace tutti::mpi::preload {
namespace {

// Communicators alive on this rank that may have one of Tutti's.
std::atomic<int64_t> kept_alive{0};

// What a thread agreed on last is void once any agreement is gone: handles are used again.
std::atomic<uint64_t> deleted{0};

struct Latest {
  MPI_Comm communicator{};
  Agreement* agreement = nullptr;
  uint64_t deleted = 0;
};
thread_local Latest latest;

int DeleteAgreement(MPI_Comm /*communicator*/, int /*key*/, void* value, void* /*extra*/) {
  const std::unique_ptr<Agreement> agreement(static_cast<Agreement*>(value));
  ++deleted;
  if (agreement->kept) --kept_alive;
  return MPI_SUCCESS;
}

// The key of the attribute, made once per process; MPI_KEYVAL_INVALID before MPI runs.
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
    // The largest are those of rank 0, but for the last word.
    constexpr int kWords = 8;
    int64_t words[kWords] = {static_cast<int64_t>(made->algorithm.method),
                             made->algorithm.radix,
                             made->algorithm.block_count,
                             made->check_counts ? 1 : 0,
                             made->temporary_limit,
                             made->reports ? 1 : 0,
                             made->memory_is_limited ? 1 : 0};
    if (made->rank != 0) {
      std::fill(words, words + kWords - 1, std::numeric_limits<int64_t>::min());
    }
    words[kWords - 1] = kept_alive;
    if (error == MPI_SUCCESS) {
      error = PMPI_Allreduce(MPI_IN_PLACE, words, kWords, MPI_INT64_T, MPI_MAX, communicator);
    }
    if (error != MPI_SUCCESS) return error;
    made->algorithm = {.method = static_cast<alltoallv::Method>(words[0]),
                       .radix = static_cast<int>(words[1]),
                       .block_count = static_cast<int>(words[2])};
    made->check_counts = words[3] != 0;
    made->temporary_limit = words[4];
    made->reports = words[5] != 0;
    made->memory_is_limited = words[6] != 0;
    made->kept = words[kWords - 1] < kMaxKept;
    if (!made->kept) made->algorithm = {.method = alltoallv::Method::kMpi};
  }
  error = PMPI_Comm_set_attr(communicator, key, made.get());
  if (error != MPI_SUCCESS) return error;
  if (made->kept) ++kept_alive;
  *agreement = made.release();
  return MPI_SUCCESS;
}

}  // namespace

bool IsMpiRunning() {
  int initialized = 0;
  int finalized = 0;
  PMPI_Initialized(&initialized);
  PMPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

int Agree(MPI_Comm communicator, Agreement (*propose)(), Agreement** agreement) {
  if (latest.agreement != nullptr && latest.communicator == communicator &&
      latest.deleted == deleted.load(std::memory_order_acquire)) {
    *agreement = latest.agreement;
    return MPI_SUCCESS;
  }
  *agreement = nullptr;
  if (communicator == MPI_COMM_NULL || !IsMpiRunning()) return MPI_SUCCESS;
  const int key = AgreementKey();
  int found = 0;
  int error = PMPI_Comm_get_attr(communicator, key, static_cast<void*>(agreement), &found);
  if (error == MPI_SUCCESS && found == 0) {
    error = MakeAgreement(communicator, key, propose(), agreement);
  }
  if (error == MPI_SUCCESS) latest = {communicator, *agreement, deleted};
  return error;
}

}  // namespace tutti::mpi::preload

#include "communicator_state.h"

#include <atomic>
#include <mutex>

namespace tutti::mpi {
namespace {

// Handles are used again: what a thread remembers is void once any state is gone.
std::atomic<uint64_t> states_freed{0};

struct LatestState {
  MPI_Comm communicator = MPI_COMM_NULL;
  CommunicatorState* state = nullptr;
  uint64_t freed = 0;
};

LatestState& LatestOfThread() {
  thread_local LatestState latest;
  return latest;
}

int DeleteState(MPI_Comm /*communicator*/, int /*key*/, void* value, void* /*extra*/) {
  ++states_freed;
  delete static_cast<CommunicatorState*>(value);
  return MPI_SUCCESS;
}

// The key of our attribute, made once per process.
int StateKey(int* key) {
  static std::mutex mutex;
  static int made = MPI_KEYVAL_INVALID;
  const std::scoped_lock lock(mutex);
  if (made == MPI_KEYVAL_INVALID) {
    const int error = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &DeleteState, &made, nullptr);
    if (error != MPI_SUCCESS) return error;
  }
  *key = made;
  return MPI_SUCCESS;
}

}  // namespace

int SameRanks(MPI_Comm communicator, MPI_Comm* own) {
  int rank = 0;
  if (const int error = PMPI_Comm_rank(communicator, &rank)) return error;
  // Not MPI_Comm_create: SMPI mixes up messages of communicators that it made.
  if (const int error = PMPI_Comm_split(communicator, 0, rank, own)) return error;
  return PMPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
}

int CommunicatorState::Of(MPI_Comm communicator, CommunicatorState** state) {
  if (const int error = FindOrCreateLocal(communicator, state)) return error;
  if ((*state)->duplicate_ != MPI_COMM_NULL) return MPI_SUCCESS;
  return SameRanks(communicator, &(*state)->duplicate_);
}

int CommunicatorState::FindOrCreateLocal(MPI_Comm communicator, CommunicatorState** state) {
  int key = MPI_KEYVAL_INVALID;
  if (const int error = StateKey(&key)) return error;
  int found = 0;
  if (const int error = PMPI_Comm_get_attr(communicator, key, static_cast<void*>(state), &found)) {
    return error;
  }
  if (found != 0) {
    LatestOfThread() = {communicator, *state, states_freed};
    return MPI_SUCCESS;
  }

  std::unique_ptr<CommunicatorState> made(new CommunicatorState);
  if (const int error = PMPI_Comm_rank(communicator, &made->rank_)) return error;
  if (const int error = PMPI_Comm_size(communicator, &made->size_)) return error;
  for (auto* each : {&made->bytes_.send_offset, &made->bytes_.send_bytes,
                     &made->bytes_.receive_offset, &made->bytes_.receive_bytes}) {
    each->resize(static_cast<size_t>(made->size_));
  }
  if (const int error = PMPI_Comm_set_attr(communicator, key, made.get())) return error;
  *state = made.release();
  return MPI_SUCCESS;
}

CommunicatorState* CommunicatorState::Latest(MPI_Comm communicator) {
#ifdef TUTTI_MPI_SMPI
  static_cast<void>(communicator);  // its ranks share a thread
  return nullptr;
#else
  const LatestState& latest = LatestOfThread();
  return latest.communicator == communicator && latest.freed == states_freed ? latest.state
                                                                             : nullptr;
#endif
}

CommunicatorState::~CommunicatorState() {
  // At the end of the program the MPI library may free attributes when it can no longer talk.
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (duplicate_ != MPI_COMM_NULL && finalized == 0) PMPI_Comm_free(&duplicate_);
}

const std::atomic<uint64_t>& CommunicatorState::NumFreed() { return states_freed; }

}  // namespace tutti::mpi

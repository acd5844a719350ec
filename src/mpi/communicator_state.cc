#include "communicator_state.h"

#include <mutex>

namespace tutti::mpi {
namespace {

int DeleteState(MPI_Comm /*communicator*/, int /*key*/, void* value, void* /*extra*/) {
  delete static_cast<CommunicatorState*>(value);
  return MPI_SUCCESS;
}

// The key of our attribute, made once a process.
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

// Not MPI_Comm_dup, which would run the copy callbacks of the program's attributes.
int SameRanks(MPI_Comm communicator, MPI_Comm* own) {
  MPI_Group group = MPI_GROUP_NULL;
  if (const int error = PMPI_Comm_group(communicator, &group)) return error;
  int error = PMPI_Comm_create(communicator, group, own);
  PMPI_Group_free(&group);
  if (error == MPI_SUCCESS) error = PMPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
  return error;
}

}  // namespace

int CommunicatorState::Of(MPI_Comm communicator, CommunicatorState** state) {
  int key = MPI_KEYVAL_INVALID;
  if (const int error = StateKey(&key)) return error;
  int found = 0;
  if (const int error = PMPI_Comm_get_attr(communicator, key, static_cast<void*>(state), &found)) {
    return error;
  }
  if (found != 0) return MPI_SUCCESS;

  std::unique_ptr<CommunicatorState> made(new CommunicatorState);
  if (const int error = PMPI_Comm_rank(communicator, &made->rank_)) return error;
  if (const int error = PMPI_Comm_size(communicator, &made->size_)) return error;
  if (const int error = SameRanks(communicator, &made->duplicate_)) return error;
  for (auto* each : {&made->bytes_.send_offset, &made->bytes_.send_bytes,
                     &made->bytes_.receive_offset, &made->bytes_.receive_bytes}) {
    each->resize(static_cast<std::size_t>(made->size_));
  }
  if (const int error = PMPI_Comm_set_attr(communicator, key, made.get())) return error;
  *state = made.release();
  return MPI_SUCCESS;
}

CommunicatorState::~CommunicatorState() {
  // At the end of the program the MPI library may free attributes when it can no longer talk.
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (duplicate_ != MPI_COMM_NULL && finalized == 0) PMPI_Comm_free(&duplicate_);
}

}  // namespace tutti::mpi

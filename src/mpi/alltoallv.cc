#include "tutti/mpi/alltoallv.h"

#include <algorithm>
#include <cstdint>

#include "call.h"
#include "choice/choose.h"
#include "communicator_state.h"
#include "exchange/direct.h"
#include "exchange/run.h"
#include "served.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::Method;

int Exchange(CommunicatorState& state, const CallSide& send, const CallSide& receive,
             const Algorithm& named) {
  const Algorithm algorithm = Resolved(named, state.size());
  const bool direct = IsDirect(algorithm.method);
  Call call;
  int error = call.Prepare(state.duplicate(), state.rank(), state.size(), send, receive, direct,
                           state.bytes());
  if (error == MPI_SUCCESS) error = call.Pack(nullptr);
  if (error == MPI_SUCCESS) {
    error = direct ? RunDirect(call.direct(), algorithm, nullptr)
                   : RunExchange(state, call.blocks(), algorithm, nullptr);
  }
  return error == MPI_SUCCESS ? call.Unpack(nullptr) : error;
}

// Whether Tutti serves calls on this communicator by this algorithm.
int IsOurs(MPI_Comm communicator, const Algorithm& algorithm, bool* ours) {
  *ours = false;
  LatestServed() = {.algorithm = {.method = alltoallv::Method::kMpi}};
  if (!CanRunExchange(algorithm.method)) return MPI_SUCCESS;
  int inter = 0;
  if (const int error = PMPI_Comm_test_inter(communicator, &inter)) return error;
  *ours = inter == 0;
  if (*ours) LatestServed().algorithm = algorithm;
  return MPI_SUCCESS;
}

// Hands errors of our own communicator to the error handler of the program's.
int Reported(MPI_Comm communicator, int error) {
  if (error != MPI_SUCCESS) PMPI_Comm_call_errhandler(communicator, error);
  return error;
}

// The state of an intracommunicator, with or without its own communicator; null of others.
int IntraState(MPI_Comm communicator, CommunicatorState** state) {
  *state = CommunicatorState::Latest(communicator);
  if (*state != nullptr) return MPI_SUCCESS;
  int inter = 0;
  if (const int error = PMPI_Comm_test_inter(communicator, &inter)) return error;
  return inter != 0 ? MPI_SUCCESS : CommunicatorState::FindOrCreateLocal(communicator, state);
}

// Adds what one side of a call says of its size: the larger side counts.
int AddSide(const int* counts, int count, MPI_Datatype type, int size, CallSize* call_size) {
  MPI_Count type_bytes = 0;
  if (const int error = PMPI_Type_size_x(type, &type_bytes)) return error;
  int64_t elements = int64_t{count} * size, largest = count;
  for (int peer = 0; counts != nullptr && peer < size; ++peer) {
    elements += counts[peer];
    largest = std::max<int64_t>(largest, counts[peer]);
  }
  call_size->total_bytes = std::max<int64_t>(call_size->total_bytes, elements * type_bytes);
  call_size->largest_block_bytes =
      std::max<int64_t>(call_size->largest_block_bytes, largest * type_bytes);
  return MPI_SUCCESS;
}

// Serves a call by what `auto` chooses. `measure(CallSize*)` says how large it is; `call` serves it
// by the algorithm it is given and reports its own errors.
template <class Measure, class Call>
int ServeByChoice(MPI_Comm communicator, CommunicatorState& state, const Measure& measure,
                  const Call& call) {
  CallSize size;
  if (const int error = measure(&size)) return Reported(communicator, error);
  CallChoice choice;
  if (const int error = BeginCall(communicator, state, size, &choice))
    return Reported(communicator, error);
  const int served = call(choice.algorithm);
  LatestServed().native_seconds = choice.native_s;
  const int ended = EndCall(state, choice);
  return served != MPI_SUCCESS ? served : Reported(communicator, ended);
}

}  // namespace

int Alltoallv(const void* send, const int send_counts[], const int send_displacements[],
              MPI_Datatype send_type, void* receive, const int receive_counts[],
              const int receive_displacements[], MPI_Datatype receive_type, MPI_Comm communicator,
              const Algorithm& algorithm) {
  if (algorithm.method == Method::kAuto) {
    CommunicatorState* state = nullptr;
    if (const int error = IntraState(communicator, &state)) return error;
    const auto serve = [&](const Algorithm& chosen) {
      return Alltoallv(send, send_counts, send_displacements, send_type, receive, receive_counts,
                       receive_displacements, receive_type, communicator, chosen);
    };
    if (state == nullptr) return serve({.method = Method::kMpi});
    if (const SettledChoice* settled = Settled(*state)) {
      const int error = serve(settled->algorithm);
      LatestServed().native_seconds = settled->native_s;
      return error;
    }
    return ServeByChoice(
        communicator, *state,
        [&](CallSize* size) {
          const int error = AddSide(receive_counts, 0, receive_type, state->size(), size);
          if (error != MPI_SUCCESS || send == MPI_IN_PLACE) return error;
          return AddSide(send_counts, 0, send_type, state->size(), size);
        },
        serve);
  }
  bool ours = false;
  if (const int error = IsOurs(communicator, algorithm, &ours)) return error;
  if (!ours) {
    return PMPI_Alltoallv(send, send_counts, send_displacements, send_type, receive, receive_counts,
                          receive_displacements, receive_type, communicator);
  }
  CommunicatorState* state = nullptr;
  if (const int error = CommunicatorState::Of(communicator, &state)) return error;
  return Reported(communicator, Exchange(*state,
                                         {.base = send,
                                          .counts = send_counts,
                                          .displacements = send_displacements,
                                          .type = send_type},
                                         {.base = receive,
                                          .counts = receive_counts,
                                          .displacements = receive_displacements,
                                          .type = receive_type},
                                         algorithm));
}

int Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
             int receive_count, MPI_Datatype receive_type, MPI_Comm communicator,
             const Algorithm& algorithm) {
  if (algorithm.method == Method::kAuto) {
    CommunicatorState* state = nullptr;
    if (const int error = IntraState(communicator, &state)) return error;
    const auto serve = [&](const Algorithm& chosen) {
      return Alltoall(send, send_count, send_type, receive, receive_count, receive_type,
                      communicator, chosen);
    };
    if (state == nullptr) return serve({.method = Method::kMpi});
    return ServeByChoice(
        communicator, *state,
        [&](CallSize* size) {
          size->uniform = true;
          return AddSide(nullptr, receive_count, receive_type, state->size(), size);
        },
        serve);
  }
  bool ours = false;
  if (const int error = IsOurs(communicator, algorithm, &ours)) return error;
  if (!ours) {
    return PMPI_Alltoall(send, send_count, send_type, receive, receive_count, receive_type,
                         communicator);
  }
  CommunicatorState* state = nullptr;
  if (const int error = CommunicatorState::Of(communicator, &state)) return error;
  return Reported(
      communicator,
      Exchange(*state, {.base = send, .count = send_count, .type = send_type},
               {.base = receive, .count = receive_count, .type = receive_type}, algorithm));
}

}  // namespace tutti::mpi

#include "tutti/mpi/alltoallv.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "buffer_pool.h"
#include "choice/choose.h"
#include "communicator_state.h"
#include "copy.h"
#include "datatypes.h"
#include "exchange/direct.h"
#include "exchange/run.h"
#include "served.h"
#include "trace.h"

namespace tutti::mpi {
namespace {

using alltoallv::Algorithm;
using alltoallv::Method;

// One side of a call as the program gave it; `displacements` null: block i is element i * count.
struct Side {
  const std::byte* base;
  const int* counts;  // null: `count` elements a block
  const int* displacements;
  int count;
  MPI_Datatype type;
  TypeShape shape;

  int CountOf(int peer) const { return counts == nullptr ? count : counts[peer]; }
  std::int64_t OffsetOf(int peer) const {
    const std::int64_t elements =
        displacements == nullptr ? std::int64_t{peer} * count : displacements[peer];
    return elements * shape.extent;
  }
};

// The bytes of every block and where it lies; where it would lie if packed, in ascending order.
std::int64_t Measure(const Side& side, int size, bool packed, std::int64_t* offset,
                     std::int64_t* bytes) {
  std::int64_t total = 0;
  for (int peer = 0; peer < size; ++peer) {
    bytes[peer] = side.CountOf(peer) * side.shape.size;
    offset[peer] = packed ? total : side.OffsetOf(peer);
    total += bytes[peer];
  }
  return total;
}

int PackSide(const Side& side, const BlockExchange& exchange, std::byte* packed) {
  for (int peer = 0; peer < exchange.size; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    const std::byte* from = side.base + side.OffsetOf(peer);
    std::byte* into = packed + exchange.send_offset[at];
    if (side.shape.plain) {
      CopyBytes(into, from, exchange.send_bytes[at]);
      continue;
    }
    const int error = PackBlock(from, side.CountOf(peer), side.type, exchange.send_bytes[at], into,
                                exchange.communicator, exchange.rank);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

int UnpackSide(const Side& side, const BlockExchange& exchange, const std::byte* packed) {
  for (int peer = 0; peer < exchange.size; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    const int error =
        UnpackBlock(packed + exchange.receive_offset[at], exchange.receive_bytes[at],
                    const_cast<std::byte*>(side.base) + side.OffsetOf(peer), side.CountOf(peer),
                    side.type, exchange.communicator, exchange.rank);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

int Exchange(CommunicatorState& state, Side send, Side receive, bool in_place,
             const Algorithm& algorithm, Trace* trace) {
  Lap lap(trace);
  if (const int error = ShapeOf(receive.type, &receive.shape)) return error;
  if (in_place) {
    send = receive;
  } else if (const int error = ShapeOf(send.type, &send.shape)) {
    return error;
  }
  // Direct algorithms hand datatypes to the MPI library; all others move packed bytes. In place
  // what is to be sent must be saved before it is overwritten.
  const bool direct = IsDirect(algorithm.method);
  const bool pack = in_place || (!send.shape.plain && !direct);
  const bool unpack = !receive.shape.plain && !direct;
  CommunicatorState::Bytes& bytes = state.bytes();
  const std::int64_t send_total =
      Measure(send, state.size(), pack, bytes.send_offset.data(), bytes.send_bytes.data());
  const std::int64_t receive_total = Measure(
      receive, state.size(), unpack, bytes.receive_offset.data(), bytes.receive_bytes.data());
  const Lease packed_send = pack ? Lease(send_total) : Lease();
  const Lease packed_receive = unpack ? Lease(receive_total) : Lease();
  if ((pack && packed_send.data() == nullptr) || (unpack && packed_receive.data() == nullptr)) {
    return MPI_ERR_NO_MEM;
  }
  const BlockExchange exchange{
      .communicator = state.duplicate(),
      .rank = state.rank(),
      .size = state.size(),
      .send = pack ? packed_send.data() : send.base,
      .send_offset = bytes.send_offset,
      .send_bytes = bytes.send_bytes,
      .receive = unpack ? packed_receive.data() : const_cast<std::byte*>(receive.base),
      .receive_offset = bytes.receive_offset,
      .receive_bytes = bytes.receive_bytes,
      .uniform_bytes = send.counts == nullptr ? send.count * send.shape.size : -1,
  };
  lap.EndsAs(&Trace::prepare_s);
  if (pack) {
    if (const int error = PackSide(send, exchange, packed_send.data())) return error;
    lap.EndsAs(&Trace::rearrange_s);
  }
  int error = MPI_SUCCESS;
  if (direct) {
    DirectExchange typed{.blocks = exchange};
    if (!pack && !send.shape.plain) {
      typed.send_counts = send.counts == nullptr ? &send.count : send.counts;
      typed.send_type = send.type;
    }
    if (!receive.shape.plain) {
      typed.receive_counts = receive.counts == nullptr ? &receive.count : receive.counts;
      typed.receive_type = receive.type;
    }
    typed.one_count = send.counts == nullptr;
    error = RunDirect(typed, algorithm, trace);
  } else {
    error = RunExchange(state, exchange, algorithm, trace);
  }
  if (error != MPI_SUCCESS || !unpack) return error;
  Lap unpacking(trace);
  error = UnpackSide(receive, exchange, packed_receive.data());
  unpacking.EndsAs(&Trace::rearrange_s);
  return error;
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

// The state of an intracommunicator; null of others.
int IntraState(MPI_Comm communicator, CommunicatorState** state) {
  *state = CommunicatorState::Latest(communicator);
  if (*state != nullptr) return MPI_SUCCESS;
  int inter = 0;
  if (const int error = PMPI_Comm_test_inter(communicator, &inter)) return error;
  return inter != 0 ? MPI_SUCCESS : CommunicatorState::Of(communicator, state);
}

// Adds what one side of a call says of its size: the larger side counts.
int AddSide(const int* counts, int count, MPI_Datatype type, int size, CallSize* call_size) {
  MPI_Count type_bytes = 0;
  if (const int error = PMPI_Type_size_x(type, &type_bytes)) return error;
  std::int64_t elements = std::int64_t{count} * size, largest = count;
  for (int peer = 0; counts != nullptr && peer < size; ++peer) {
    elements += counts[peer];
    largest = std::max<std::int64_t>(largest, counts[peer]);
  }
  call_size->total_bytes = std::max<std::int64_t>(call_size->total_bytes, elements * type_bytes);
  call_size->largest_block_bytes =
      std::max<std::int64_t>(call_size->largest_block_bytes, largest * type_bytes);
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
  if (const int error = BeginCall(state, size, &choice)) return Reported(communicator, error);
  const int served = call(choice.algorithm);
  LatestServed().own_seconds = choice.own_s;
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
      LatestServed().own_seconds = settled->own_s;
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
                                         {.base = static_cast<const std::byte*>(send),
                                          .counts = send_counts,
                                          .displacements = send_displacements,
                                          .count = 0,
                                          .type = send_type,
                                          .shape = {}},
                                         {.base = static_cast<const std::byte*>(receive),
                                          .counts = receive_counts,
                                          .displacements = receive_displacements,
                                          .count = 0,
                                          .type = receive_type,
                                          .shape = {}},
                                         send == MPI_IN_PLACE, algorithm, nullptr));
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
  return Reported(communicator, Exchange(*state,
                                         {.base = static_cast<const std::byte*>(send),
                                          .counts = nullptr,
                                          .displacements = nullptr,
                                          .count = send_count,
                                          .type = send_type,
                                          .shape = {}},
                                         {.base = static_cast<const std::byte*>(receive),
                                          .counts = nullptr,
                                          .displacements = nullptr,
                                          .count = receive_count,
                                          .type = receive_type,
                                          .shape = {}},
                                         send == MPI_IN_PLACE, algorithm, nullptr));
}

}  // namespace tutti::mpi

#include "call.h"

#include "copy.h"

namespace tutti::mpi {

int Call::Measure(const Side& side, int size, bool packed, int64_t* offset, int64_t* bytes,
                  int64_t* total) {
  int64_t sum = 0;
  int signs = 0;
  for (int peer = 0; peer < size; ++peer) {
    const int count = side.CountOf(peer);
    signs |= count;
    bytes[peer] = count * side.shape.size;
    // Nobody looks at where an empty block lies: it may be anywhere, and the buffer null.
    offset[peer] = packed ? sum : bytes[peer] == 0 ? 0 : side.OffsetOf(peer);
    sum += bytes[peer];
  }
  *total = sum;
  return signs < 0 ? MPI_ERR_COUNT : MPI_SUCCESS;
}

int Call::Prepare(MPI_Comm communicator, int rank, int size, const CallSide& send,
                  const CallSide& receive, bool direct, CommunicatorState::Bytes& bytes) {
  const bool in_place = send.base == MPI_IN_PLACE;
  if (receive.type == MPI_DATATYPE_NULL || (!in_place && send.type == MPI_DATATYPE_NULL)) {
    return MPI_ERR_TYPE;
  }
  static_cast<CallSide&>(receive_) = receive;
  if (const int error = ShapeOf(receive.type, &receive_.shape)) return error;
  if (in_place) {
    send_ = receive_;
  } else {
    static_cast<CallSide&>(send_) = send;
    if (const int error = ShapeOf(send.type, &send_.shape)) return error;
  }
  pack_ = in_place || (!send_.shape.plain && !direct);
  unpack_ = !receive_.shape.plain && !direct;
  int64_t send_total = 0;
  int64_t receive_total = 0;
  if (const int error = Measure(send_, size, pack_, bytes.send_offset.data(),
                                bytes.send_bytes.data(), &send_total)) {
    return error;
  }
  if (const int error = Measure(receive_, size, unpack_, bytes.receive_offset.data(),
                                bytes.receive_bytes.data(), &receive_total)) {
    return error;
  }
  const auto own = static_cast<size_t>(rank);
  if (bytes.send_bytes[own] != bytes.receive_bytes[own]) return MPI_ERR_TRUNCATE;
  if (pack_) packed_send_ = Lease(send_total);
  if (unpack_) packed_receive_ = Lease(receive_total);
  if ((pack_ && packed_send_.data() == nullptr) || (unpack_ && packed_receive_.data() == nullptr)) {
    return MPI_ERR_NO_MEM;
  }
  blocks_ = {
      .communicator = communicator,
      .rank = rank,
      .size = size,
      .send = pack_ ? packed_send_.data() : static_cast<const std::byte*>(send_.base),
      .send_offset = bytes.send_offset,
      .send_bytes = bytes.send_bytes,
      // The program gave it as what is to be written.
      .receive = unpack_ ? packed_receive_.data()
                         : static_cast<std::byte*>(const_cast<void*>(receive_.base)),
      .receive_offset = bytes.receive_offset,
      .receive_bytes = bytes.receive_bytes,
      .uniform_bytes = send_.counts == nullptr ? send_.count * send_.shape.size : -1,
  };
  return MPI_SUCCESS;
}

DirectExchange Call::direct() const {
  DirectExchange typed{.blocks = blocks_};
  if (!pack_ && !send_.shape.plain) {
    typed.send_counts = send_.counts == nullptr ? &send_.count : send_.counts;
    typed.send_type = send_.type;
  }
  if (!receive_.shape.plain) {
    typed.receive_counts = receive_.counts == nullptr ? &receive_.count : receive_.counts;
    typed.receive_type = receive_.type;
  }
  typed.one_count = send_.counts == nullptr;
  return typed;
}

int Call::Pack(Trace* trace) {
  if (!pack_) return MPI_SUCCESS;
  StopWatch watch(trace);
  for (int peer = 0; peer < blocks_.size; ++peer) {
    const auto at = static_cast<size_t>(peer);
    if (blocks_.send_bytes[at] == 0) continue;
    const std::byte* from = static_cast<const std::byte*>(send_.base) + send_.OffsetOf(peer);
    std::byte* into = packed_send_.data() + blocks_.send_offset[at];
    if (send_.shape.plain) {
      CopyBytes(into, from, blocks_.send_bytes[at]);
      continue;
    }
    const int error = PackBlock(from, send_.CountOf(peer), send_.type, blocks_.send_bytes[at], into,
                                blocks_.communicator, blocks_.rank);
    if (error != MPI_SUCCESS) return error;
  }
  watch.Charge(&Trace::rearrange_s);
  return MPI_SUCCESS;
}

int Call::Unpack(Trace* trace) {
  if (!unpack_) return MPI_SUCCESS;
  StopWatch watch(trace);
  auto* base = static_cast<std::byte*>(const_cast<void*>(receive_.base));
  for (int peer = 0; peer < blocks_.size; ++peer) {
    const auto at = static_cast<size_t>(peer);
    if (blocks_.receive_bytes[at] == 0) continue;
    const int error =
        UnpackBlock(packed_receive_.data() + blocks_.receive_offset[at], blocks_.receive_bytes[at],
                    base + receive_.OffsetOf(peer), receive_.CountOf(peer), receive_.type,
                    blocks_.communicator, blocks_.rank);
    if (error != MPI_SUCCESS) return error;
  }
  watch.Charge(&Trace::rearrange_s);
  return MPI_SUCCESS;
}

}  // namespace tutti::mpi

#include "exchange/padded_bruck.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "buffer_pool.h"
#include "copy.h"
#include "exchange/tuna.h"

namespace tutti::mpi {

int PaddedBruckExchange(const BlockExchange& exchange, Trace* trace) {
  StopWatch watch(trace);
  int64_t largest = 0;
  for (const int64_t bytes : exchange.send_bytes) largest = std::max(largest, bytes);
  const int agreed =
      PMPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_INT64_T, MPI_MAX, exchange.communicator);
  if (agreed != MPI_SUCCESS) return agreed;
  const auto blocks = static_cast<int64_t>(exchange.size);
  const LeasedArray<std::byte> send(blocks * largest);
  const LeasedArray<std::byte> receive(blocks * largest);
  const LeasedArray<int64_t> offset(blocks);
  const LeasedArray<int64_t> bytes(blocks);
  if (!send.ok() || !receive.ok() || !offset.ok() || !bytes.ok()) return MPI_ERR_NO_MEM;
  watch.Charge(&Trace::prepare_s);
  for (int64_t block = 0; block < blocks; ++block) {
    const auto at = static_cast<size_t>(block);
    offset[block] = block * largest;
    bytes[block] = largest;
    CopyBytes(send.data() + offset[block], exchange.send + exchange.send_offset[at],
              exchange.send_bytes[at]);
    // Padding is sent as well; it must not be what this process had in memory before.
    std::memset(send.data() + offset[block] + exchange.send_bytes[at], 0,
                static_cast<size_t>(largest - exchange.send_bytes[at]));
  }
  watch.Charge(&Trace::copy_s);
  BlockExchange padded = exchange;
  padded.send = send.data();
  padded.receive = receive.data();
  padded.send_offset = padded.receive_offset = offset.span();
  padded.send_bytes = padded.receive_bytes = bytes.span();
  padded.uniform_bytes = largest;
  const int error = TunaExchange(padded, {.radix = 2, .in_flight = 1}, trace);
  if (error != MPI_SUCCESS) return error;
  StopWatch last(trace);
  if (trace != nullptr) trace->NoteStaging(2 * blocks * largest);
  for (int64_t block = 0; block < blocks; ++block) {
    const auto at = static_cast<size_t>(block);
    CopyBytes(exchange.receive + exchange.receive_offset[at], receive.data() + offset[block],
              exchange.receive_bytes[at]);
  }
  last.Charge(&Trace::rearrange_s);
  return MPI_SUCCESS;
}

}  // namespace tutti::mpi

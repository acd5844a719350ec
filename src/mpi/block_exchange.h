// BlockExchange: one rank's view of an all-to-all-v with everything counted in bytes; what every
// algorithm of this room moves. Datatypes are packed away before (datatypes.h), so algorithms see
// bytes only.
//
// Model       Block i of `send` goes to rank i; block i of `receive` comes from rank i. Blocks may
//             lie in any order and with holes; blocks of zero bytes are legal and send no message
//             that can be avoided.
// Invariants  send_bytes[rank] == receive_bytes[rank]; the ranges are `size` long each.
//             `communicator` is Tutti's own duplicate (communicator_state.h): no tag of the
//             program's can meet ours.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::mpi {

struct BlockExchange {
  MPI_Comm communicator;
  int rank;
  int size;
  const std::byte* send;
  std::span<const int64_t> send_offset;  // bytes from `send`
  std::span<const int64_t> send_bytes;
  std::byte* receive;
  std::span<const int64_t> receive_offset;
  std::span<const int64_t> receive_bytes;
  // What every block of every rank has, if all ranks know that they all have it (MPI_Alltoall).
  int64_t uniform_bytes = -1;
};

}  // namespace tutti::mpi

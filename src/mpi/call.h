// Call: a call of MPI_Alltoallv or MPI_Alltoall made ready for an algorithm: counts and
// displacements in bytes, derived datatypes and MPI_IN_PLACE packed away where the algorithm moves
// bytes.
//
// Model       Direct algorithms hand datatypes to the MPI library as they are; all others move
//             packed bytes. A plain side is never packed; in place what is to be sent is saved
//             first, since it gets overwritten.
//               call.Prepare(...); call.Pack(trace);
//               <the algorithm over call.blocks() or call.direct()>; call.Unpack(trace)
// Errors      An MPI error code: MPI_ERR_TYPE for no datatype, MPI_ERR_COUNT for a negative count,
//             MPI_ERR_TRUNCATE where a rank sends itself another number of bytes than it receives,
//             MPI_ERR_NO_MEM.
// Threads     One at a time.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "block_exchange.h"
#include "buffer_pool.h"
#include "communicator_state.h"
#include "datatypes.h"
#include "exchange/direct.h"
#include "trace.h"

namespace tutti::mpi {

// One side as the program gave it; `displacements` null: block i begins at element i * count.
struct CallSide {
  const void* base = nullptr;
  const int* counts = nullptr;  // null: `count` elements a block
  const int* displacements = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
};

class Call {
 public:
  // `bytes` and what the sides point to must outlive this.
  int Prepare(MPI_Comm communicator, int rank, int size, const CallSide& send,
              const CallSide& receive, bool direct, CommunicatorState::Bytes& bytes);

  const BlockExchange& blocks() const { return blocks_; }
  DirectExchange direct() const;

  int Pack(Trace* trace);
  int Unpack(Trace* trace);

 private:
  struct Side : CallSide {
    TypeShape shape;

    int CountOf(int peer) const { return counts == nullptr ? count : counts[peer]; }
    int64_t OffsetOf(int peer) const {
      const int64_t elements =
          displacements == nullptr ? int64_t{peer} * count : displacements[peer];
      return elements * shape.extent;
    }
  };

  // Fills bytes of every block and where it lies (or would, packed in ascending order) and their
  // sum.
  static int Measure(const Side& side, int size, bool packed, int64_t* offset, int64_t* bytes,
                     int64_t* total);

  Side send_, receive_;
  bool pack_ = false;
  bool unpack_ = false;
  Lease packed_send_, packed_receive_;
  BlockExchange blocks_{};
};

}  // namespace tutti::mpi

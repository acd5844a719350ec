// Calls of collectives through the memory of the node, or of each of several: data of any type as plain bytes, packed where
// it must be.
//
// Errors      Of the MPI library where it packs or unpacks; given to the error handler of the call's communicator.
// Threads     One at a time.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "buffer_pool.h"
#include "engine/across_nodes.h"
#include "engine/node_collectives.h"
#include "interface.h"

namespace tutti::mpi::preload {

class NodeCalls {
 public:
  // Collective over `communicator`, whose rank r is on node nodes[r] and which, as `next`, must outlive it. Null on all ranks:
  // no memory is shared.
  static int Make(MPI_Comm communicator, int rank, std::span<const int> nodes,
                  const NextCalls& next, std::unique_ptr<NodeCalls>* made);

  // Else calls are the MPI library's.
  bool Serves(Collective which) const { return node_ != nullptr || AcrossNodes::Does(which); }

  // A call that is sound (call_shape.h). Of types that the MPI library does not pack, `next` runs it, and says so.
  int Run(const CollectiveCall& call);

 private:
  NodeCalls(MPI_Comm communicator, int rank, int size, const NextCalls& next)
      : communicator_(communicator), rank_(rank), size_(size), next_(next) {}

  // Data of one side of a call as plain bytes.
  struct Side {
    std::byte* data = nullptr;
    Lease packed;
    bool is_packed() const { return packed.data() != nullptr; }
  };
  bool CanUnpack(MPI_Datatype type) const;
  int MakeSide(const void* buffer, int64_t bytes, MPI_Datatype type, Side* side) const;
  int Pack(const void* buffer, int count, MPI_Datatype type, int64_t bytes, Side* side) const;
  int Unpack(const Side& side, int64_t offset, int64_t bytes, void* buffer, int count,
             MPI_Datatype type) const;
  static std::byte* At(const void* buffer, int64_t elements, MPI_Datatype type);
  int RunReduction(const CollectiveCall& call);
  int RunBroadcast(const CollectiveCall& call);
  int RunGathered(const CollectiveCall& call);
  int RunRooted(const CollectiveCall& call);

  const MPI_Comm communicator_;
  const int rank_, size_;
  const NextCalls& next_;
  // One of them.
  std::unique_ptr<NodeCollectives> node_;
  std::unique_ptr<AcrossNodes> across_;
};

}  // namespace tutti::mpi::preload

#include "engine/node_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "datatypes.h"
#include "engine/call_shape.h"
#include "engine/handles.h"
#include "engine/reductions.h"

namespace tutti::mpi::preload {

int NodeCalls::Make(MPI_Comm communicator, int rank, std::span<const int> nodes,
                    const NextCalls& next, std::unique_ptr<NodeCalls>* made) {
  const auto size = static_cast<int>(nodes.size());
  std::unique_ptr<NodeCalls> calls(new NodeCalls(communicator, rank, size, next));
  const bool one_node =
      std::all_of(nodes.begin(), nodes.end(), [&nodes](int node) { return node == nodes.front(); });
  const int error = one_node ? NodeCollectives::Make(communicator, rank, size, &calls->node_)
                             : AcrossNodes::Make(communicator, rank, nodes, &calls->across_);
  if (error != MPI_SUCCESS) return error;
  if (calls->node_ != nullptr || calls->across_ != nullptr) *made = std::move(calls);
  return MPI_SUCCESS;
}

std::byte* NodeCalls::At(const void* buffer, int64_t elements, MPI_Datatype type) {
  MPI_Aint lower = 0, extent = NamedTypeSize(type);
  if (extent == 0) PMPI_Type_get_extent(type, &lower, &extent);
  return static_cast<std::byte*>(const_cast<void*>(buffer)) + elements * extent;
}

// Whether the MPI library packs elements of this type: not of one that was not committed. It then
// says so itself.
bool NodeCalls::CanUnpack(MPI_Datatype type) const {
  if (NamedTypeSize(type) > 0) return true;
  int position = 0;
  std::byte from[1] = {}, into[1] = {};
  return PMPI_Pack(from, 0, type, into, 1, &position, communicator_) == MPI_SUCCESS;
}

// `side` is where `bytes` of that type lie, or room for them packed.
int NodeCalls::MakeSide(const void* buffer, int64_t bytes, MPI_Datatype type, Side* side) const {
  bool plain = NamedTypeSize(type) > 0;
  if (!plain) {
    TypeShape shape;
    if (const int error = ShapeOf(type, &shape)) return error;
    plain = shape.plain;
  }
  if (plain) {
    side->data = static_cast<std::byte*>(const_cast<void*>(buffer));
    return MPI_SUCCESS;
  }
  side->packed = Lease(std::max<int64_t>(bytes, 1));
  side->data = side->packed.data();
  return side->data == nullptr ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int NodeCalls::Pack(const void* buffer, int count, MPI_Datatype type, int64_t bytes,
                    Side* side) const {
  if (const int error = MakeSide(buffer, bytes, type, side)) return error;
  if (!side->is_packed()) return MPI_SUCCESS;
  return PackBlock(static_cast<const std::byte*>(buffer), count, type, bytes, side->data,
                   communicator_, rank_);
}

int NodeCalls::Unpack(const Side& side, int64_t offset, int64_t bytes, void* buffer, int count,
                      MPI_Datatype type) const {
  if (!side.is_packed()) return MPI_SUCCESS;
  return UnpackBlock(side.data + offset, bytes, static_cast<std::byte*>(buffer), count, type,
                     communicator_, rank_);
}

int NodeCalls::RunReduction(const CollectiveCall& call) {
  const Elements elements{.type = FromHandle<MPI_Datatype>(call.receive_type),
                          .size = NamedTypeSize(FromHandle<MPI_Datatype>(call.receive_type)),
                          .op = FromHandle<MPI_Op>(call.op)};
  auto* const out = static_cast<std::byte*>(call.receive);
  const std::byte* const in =
      call.send == MPI_IN_PLACE ? out : static_cast<const std::byte*>(call.send);
  if (across_ != nullptr) return across_->AllReduce(in, out, call.receive_count, elements);
  switch (call.which) {
    case Collective::kAllreduce:
      return node_->AllReduce(in, out, call.receive_count, elements);
    case Collective::kReduce:
      return node_->Reduce(in, out, call.receive_count, elements, call.root);
    case Collective::kReduceScatter:
      return node_->ReduceScatter(in, out, {call.counts, static_cast<size_t>(size_)}, elements);
    default:
      break;
  }
  const std::vector<int> counts(static_cast<size_t>(size_), call.receive_count);
  return node_->ReduceScatter(in, out, counts, elements);
}

// All-gather of equal and of unequal blocks.
int NodeCalls::RunGathered(const CollectiveCall& call) {
  const auto type = FromHandle<MPI_Datatype>(call.receive_type);
  const int64_t size = SizeOf(type);
  const auto count_of = [&](int rank) {
    return call.counts != nullptr ? call.counts[rank] : call.receive_count;
  };
  const auto place_of = [&](int rank) {
    return At(call.receive,
              call.displacements != nullptr ? call.displacements[rank]
                                            : int64_t{rank} * call.receive_count,
              type);
  };
  int64_t all_bytes = 0;
  for (int rank = 0; rank < size_; ++rank) all_bytes += count_of(rank) * size;
  Side all;
  if (const int error = MakeSide(call.receive, all_bytes, type, &all)) return error;
  std::vector<NodeCollectives::Block> blocks;
  int64_t before = 0;
  for (int rank = 0; rank < size_; ++rank) {
    blocks.push_back({all.is_packed() ? all.data + before : place_of(rank), count_of(rank) * size});
    before += blocks.back().bytes;
  }
  const NodeCollectives::Block& mine = blocks[static_cast<size_t>(rank_)];
  const bool in_place = call.send == MPI_IN_PLACE;
  Side own;
  if (!in_place) {
    const auto send_type = FromHandle<MPI_Datatype>(call.send_type);
    if (const int error = Pack(call.send, call.send_count, send_type, mine.bytes, &own))
      return error;
  } else if (all.is_packed()) {
    if (const int error = PackBlock(place_of(rank_), count_of(rank_), type, mine.bytes, mine.at,
                                    communicator_, rank_)) {
      return error;
    }
  }
  // Null: a block of no bytes.
  node_->AllGather(in_place || own.data == nullptr ? nullptr : own.data, blocks);
  for (int rank = 0; rank < size_; ++rank) {
    if (in_place && rank == rank_) continue;
    const NodeCollectives::Block& block = blocks[static_cast<size_t>(rank)];
    if (const int error =
            Unpack(all, block.at - all.data, block.bytes, place_of(rank), count_of(rank), type)) {
      return error;
    }
  }
  return MPI_SUCCESS;
}

int NodeCalls::RunRooted(const CollectiveCall& call) {
  const bool is_root = call.root == rank_;
  const bool scatters = call.which == Collective::kScatter;
  // Size of one block on the side of the root, and on the side of every rank.
  const void* const of_root = scatters ? call.send : call.receive;
  const int root_count = scatters ? call.send_count : call.receive_count;
  const auto root_type = FromHandle<MPI_Datatype>(scatters ? call.send_type : call.receive_type);
  void* const of_each = const_cast<void*>(scatters ? call.receive : call.send);
  const int each_count = scatters ? call.receive_count : call.send_count;
  const auto each_type = FromHandle<MPI_Datatype>(scatters ? call.receive_type : call.send_type);
  const bool in_place = of_each == MPI_IN_PLACE;
  const int64_t bytes = is_root ? root_count * SizeOf(root_type) : each_count * SizeOf(each_type);

  Side all, own;
  if (is_root) {
    const int64_t all_bytes = bytes * size_;
    if (const int error = MakeSide(of_root, all_bytes, root_type, &all)) return error;
  }
  if (!in_place) {
    const int error = scatters ? MakeSide(of_each, bytes, each_type, &own)
                               : Pack(of_each, each_count, each_type, bytes, &own);
    if (error != MPI_SUCCESS) return error;
  }
  const auto place_of = [&](int rank) {
    return At(of_root, int64_t{rank} * root_count, root_type);
  };
  if (!scatters) {
    node_->Gather(own.data, all.data, bytes, call.root);
    for (int rank = 0; is_root && rank < size_; ++rank) {
      if (in_place && rank == rank_) continue;
      if (const int error =
              Unpack(all, rank * bytes, bytes, place_of(rank), root_count, root_type)) {
        return error;
      }
    }
    return MPI_SUCCESS;
  }
  for (int rank = 0; all.is_packed() && rank < size_; ++rank) {
    if (in_place && rank == rank_) continue;
    if (const int error = PackBlock(place_of(rank), root_count, root_type, bytes,
                                    all.data + rank * bytes, communicator_, rank_)) {
      return error;
    }
  }
  node_->Scatter(all.data, own.data, bytes, call.root);
  return in_place ? MPI_SUCCESS : Unpack(own, 0, bytes, of_each, each_count, each_type);
}

int NodeCalls::RunBroadcast(const CollectiveCall& call) {
  const auto type = FromHandle<MPI_Datatype>(call.receive_type);
  const int64_t bytes = call.receive_count * SizeOf(type);
  const bool is_root = call.root == rank_;
  Side data;
  if (const int error = is_root ? Pack(call.receive, call.receive_count, type, bytes, &data)
                                : MakeSide(call.receive, bytes, type, &data)) {
    return error;
  }
  if (across_ == nullptr) {
    node_->Broadcast(data.data, bytes, call.root);
  } else if (const int error = across_->Broadcast(data.data, bytes, call.root)) {
    return error;
  }
  return is_root ? MPI_SUCCESS : Unpack(data, 0, bytes, call.receive, call.receive_count, type);
}

int NodeCalls::Run(const CollectiveCall& call) {
  const auto type = FromHandle<MPI_Datatype>(call.receive_type);
  int error = MPI_SUCCESS;
  if (call.which == Collective::kBarrier) {
    if (across_ != nullptr)
      error = across_->Barrier();
    else
      node_->Barrier();
  } else if (Reduces(call.which)) {
    error = RunReduction(call);
  } else if (call.which == Collective::kBcast) {
    if (!CanUnpack(type)) return next_.collective(call);
    error = RunBroadcast(call);
  } else {
    const bool rooted = HasRoot(call.which);
    const bool is_root = rooted && call.root == rank_;
    const bool scatters = call.which == Collective::kScatter;
    const bool has_send = scatters ? is_root : call.send != MPI_IN_PLACE;
    const bool has_receive = scatters ? call.receive != MPI_IN_PLACE : (!rooted || is_root);
    if ((has_send && !CanUnpack(FromHandle<MPI_Datatype>(call.send_type))) ||
        (has_receive && !CanUnpack(type))) {
      return next_.collective(call);
    }
    error = rooted ? RunRooted(call) : RunGathered(call);
  }
  if (error != MPI_SUCCESS) {
    PMPI_Comm_call_errhandler(FromHandle<MPI_Comm>(call.communicator), error);
  }
  return error;
}

}  // namespace tutti::mpi::preload

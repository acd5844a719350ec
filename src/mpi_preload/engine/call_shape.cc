#include "engine/call_shape.h"

#include <algorithm>
#include <numeric>

#include "engine/handles.h"
#include "engine/reductions.h"

namespace tutti::mpi::preload {

bool Reduces(Collective which) {
  return which == Collective::kAllreduce || which == Collective::kReduce ||
         which == Collective::kReduceScatter || which == Collective::kReduceScatterBlock;
}

bool HasRoot(Collective which) {
  return which == Collective::kBcast || which == Collective::kReduce || GivesBlocks(which);
}

int64_t SizeOf(MPI_Datatype type) {
  if (const int64_t size = NamedTypeSize(type); size > 0) return size;
  if (type == MPI_DATATYPE_NULL) return -1;
  MPI_Count size = 0;
  return PMPI_Type_size_x(type, &size) == MPI_SUCCESS ? static_cast<int64_t>(size) : -1;
}

bool IsSound(const CollectiveCall& call, int rank, int size) {
  if (call.which == Collective::kBarrier) return true;
  if (HasRoot(call.which) && (call.root < 0 || call.root >= size)) return false;
  const bool is_root = HasRoot(call.which) && call.root == rank;
  const bool in_place = call.send == MPI_IN_PLACE;
  const bool receives_in_place = call.receive == MPI_IN_PLACE;
  const auto has_type = [](Handle type) {
    return type != 0 && FromHandle<MPI_Datatype>(type) != MPI_DATATYPE_NULL;
  };
  // No buffer: of absolute addresses, which are types of the program.
  const auto has_side = [&](const void* buffer, int count, Handle type) {
    return count >= 0 && has_type(type) &&
           (buffer != nullptr || count == 0 || NamedTypeSize(FromHandle<MPI_Datatype>(type)) == 0);
  };
  const auto has_counts = [&] {
    return call.counts != nullptr && has_type(call.receive_type) &&
           std::all_of(call.counts, call.counts + size, [](int count) { return count >= 0; });
  };
  const auto sends = [&] { return has_side(call.send, call.send_count, call.send_type); };
  const auto receives = [&] {
    return has_side(call.receive, call.receive_count, call.receive_type);
  };
  switch (call.which) {
    case Collective::kAllreduce:
    case Collective::kReduceScatterBlock:
      return receives() && !receives_in_place && call.send != nullptr;
    case Collective::kReduceScatter:
      return has_counts() && !receives_in_place && call.send != nullptr &&
             (call.receive != nullptr || call.counts[rank] == 0);
    case Collective::kReduce:
      if (call.send == nullptr || (in_place && !is_root)) return false;
      return is_root ? receives() && !receives_in_place
                     : call.receive_count >= 0 && has_type(call.receive_type);
    case Collective::kBcast:
      return receives() && !receives_in_place;
    case Collective::kAllgather:
    case Collective::kAllgatherv:
      if (receives_in_place || (!in_place && !sends())) return false;
      return call.which == Collective::kAllgather ? receives()
                                                  : has_counts() && call.displacements != nullptr;
    case Collective::kGather:
      if (in_place ? !is_root : !sends()) return false;
      return !is_root || (receives() && !receives_in_place);
    case Collective::kScatter:
      if (receives_in_place ? !is_root : !receives()) return false;
      return !is_root || (!in_place && sends());
    case Collective::kBarrier:
      break;
  }
  return true;
}

bool BytesOf(const CollectiveCall& call, int rank, int size, int64_t* bytes) {
  const bool is_root = call.root == rank;
  Handle type = call.receive_type;
  int64_t count = call.receive_count;
  switch (call.which) {
    case Collective::kBarrier:
      *bytes = 0;
      return true;
    case Collective::kAllgatherv:
    case Collective::kReduceScatter:
      count = std::accumulate(call.counts, call.counts + size, int64_t{0});
      break;
    case Collective::kGather:
    case Collective::kScatter:
      // The side that is there on any rank, also in place.
      if (CountsWhereItSends(call.which, is_root)) {
        type = call.send_type;
        count = call.send_count;
      }
      count *= size;
      break;
    case Collective::kAllgather:
    case Collective::kReduceScatterBlock:
      count *= size;
      break;
    case Collective::kAllreduce:
    case Collective::kBcast:
    case Collective::kReduce:
      break;
  }
  if (count == 0) return false;
  const int64_t of_element = SizeOf(FromHandle<MPI_Datatype>(type));
  *bytes = count * of_element;
  return of_element > 0;
}

}  // namespace tutti::mpi::preload

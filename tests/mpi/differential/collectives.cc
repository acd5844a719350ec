#include "collectives.h"

#include <cstddef>
#include <cstdint>

namespace tutti::mpi::differential {
namespace {

template <class Function, class... More>
int Alltoallv(Function* function, const Arguments& a, More... more) {
  return function(a.send, a.send_counts.data(), a.send_displacements.data(), a.send_type, a.receive,
                  a.receive_counts.data(), a.receive_displacements.data(), a.receive_type,
                  a.communicator, more...);
}

template <class Function, class... More>
int Alltoall(Function* function, const Arguments& a, More... more) {
  return function(a.send, a.send_counts.empty() ? 0 : a.send_counts.front(), a.send_type, a.receive,
                  a.receive_counts.front(), a.receive_type, a.communicator, more...);
}

int64_t ExtentOf(MPI_Datatype type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  return extent;
}

}  // namespace

const std::vector<Collective>& Collectives() {
  static const std::vector<Collective> rows = {
      {.name = "MPI_Alltoallv",
       .equal_blocks = false,
       .native = [](const Arguments& a) { return Alltoallv(&PMPI_Alltoallv, a); },
       .taken_over = [](const Arguments& a) { return Alltoallv(&MPI_Alltoallv, a); },
       .by_name = [](const Arguments& a,
                     const char* name) { return Alltoallv(&tutti_alltoallv, a, name); },
       .nonblocking = [](const Arguments& a,
                         MPI_Request* request) { return Alltoallv(&MPI_Ialltoallv, a, request); },
       .persistent =
           [](const Arguments& a, const char* name, tutti_exchange* exchange) {
             return Alltoallv(&tutti_alltoallv_init, a, name, exchange);
           }},
      {.name = "MPI_Alltoall",
       .equal_blocks = true,
       .native = [](const Arguments& a) { return Alltoall(&PMPI_Alltoall, a); },
       .taken_over = [](const Arguments& a) { return Alltoall(&MPI_Alltoall, a); },
       .by_name = [](const Arguments& a,
                     const char* name) { return Alltoall(&tutti_alltoall, a, name); },
       .nonblocking = [](const Arguments& a,
                         MPI_Request* request) { return Alltoall(&MPI_Ialltoall, a, request); },
       .persistent = nullptr},
  };
  return rows;
}

int ByMessages(const Collective& collective, const Arguments& a) {
  constexpr int kTag = 7;
  int size = 0;
  PMPI_Comm_size(a.communicator, &size);
  std::vector<MPI_Request> requests;
  std::vector<std::vector<char>> kept;  // in place: what is sent, before it is overwritten
  const bool in_place = a.send == MPI_IN_PLACE;
  const auto place = [&](const void* base, const std::vector<int>& counts,
                         const std::vector<int>& displacements, MPI_Datatype type, int peer) {
    const auto at = static_cast<size_t>(peer);
    const int64_t elements =
        collective.equal_blocks ? int64_t{peer} * counts[at] : displacements[at];
    return static_cast<char*>(const_cast<void*>(base)) +
           (counts[at] == 0 ? 0 : elements * ExtentOf(type));
  };
  for (int peer = 0; peer < size && in_place; ++peer) {
    const int count = a.receive_counts[static_cast<size_t>(peer)];
    int bytes = 0;
    PMPI_Pack_size(count, a.receive_type, a.communicator, &bytes);
    std::vector<char>& block = kept.emplace_back(static_cast<size_t>(bytes) + 1);
    int position = 0;
    PMPI_Pack(place(a.receive, a.receive_counts, a.receive_displacements, a.receive_type, peer),
              count, a.receive_type, block.data(), bytes, &position, a.communicator);
    block.resize(static_cast<size_t>(position));
  }
  for (int peer = 0; peer < size; ++peer) {
    const auto at = static_cast<size_t>(peer);
    PMPI_Irecv(place(a.receive, a.receive_counts, a.receive_displacements, a.receive_type, peer),
               a.receive_counts[at], a.receive_type, peer, kTag, a.communicator,
               &requests.emplace_back());
    if (in_place) {
      PMPI_Isend(kept[at].data(), static_cast<int>(kept[at].size()), MPI_PACKED, peer, kTag,
                 a.communicator, &requests.emplace_back());
    } else {
      PMPI_Isend(place(a.send, a.send_counts, a.send_displacements, a.send_type, peer),
                 a.send_counts[at], a.send_type, peer, kTag, a.communicator,
                 &requests.emplace_back());
    }
  }
  return PMPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

}  // namespace tutti::mpi::differential

// How long a simulated network needs at least for an all-to-all-v: the time of its busiest link
// when every byte between two nodes goes once along its route. No algorithm is faster that sends
// between nodes what has to go between them, however it splits or merges messages.
//
// Complexity  A route for each ordered pair of nodes, a look at each pair of ranks.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <simgrid/s4u.hpp>
#include <utility>
#include <vector>

namespace tutti::mpi {

// Seconds, on rank 0; 0 on the others. Collective over `communicator`; `bytes(from, to)` is called
// with ranks of it.
template <class Bytes>
double NetworkFloor(MPI_Comm communicator, const Bytes& bytes) {
  using simgrid::s4u::Host;
  using simgrid::s4u::Link;
  int rank = 0, size = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  // All ranks of a simulation live in one process.
  const auto mine = reinterpret_cast<uintptr_t>(simgrid::s4u::this_actor::get_host());
  std::vector<uintptr_t> hosts(static_cast<size_t>(size));
  MPI_Gather(&mine, sizeof mine, MPI_BYTE, hosts.data(), sizeof mine, MPI_BYTE, 0, communicator);
  if (rank != 0) return 0;
  std::map<std::pair<uintptr_t, uintptr_t>, int64_t> between;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      const uintptr_t a = hosts[static_cast<size_t>(from)];
      const uintptr_t b = hosts[static_cast<size_t>(to)];
      if (a != b) between[{a, b}] += bytes(from, to);
    }
  }
  std::map<const Link*, int64_t> carried;
  double busiest_s = 0;
  for (const auto& [pair, sum] : between) {
    std::vector<Link*> route;
    reinterpret_cast<Host*>(pair.first)
        ->route_to(reinterpret_cast<Host*>(pair.second), route, nullptr);
    for (const Link* link : route) {
      int64_t& all = carried[link];
      all += sum;
      const double seconds = static_cast<double>(all) / link->get_bandwidth();
      if (seconds > busiest_s) busiest_s = seconds;
    }
  }
  return busiest_s;
}

}  // namespace tutti::mpi

// Which cable goes from which port to which: what the person with the cables needs.
//
// Model       Every rank has ports 0 .. d-1. Two-way: a cable joins one port of each of two ranks
//             and carries a link each way. One way: a fibre leads from the transmit side of a port
//             to the receive side of another, and the two sides of a port go to different places.
// Order       At each rank ports are numbered by the rank at the other end, side by side ones in
//             the order of their links; of one-way fibres the transmit and the receive sides are
//             numbered apart. Runs are sorted by the first end. What a self-loop takes up is a port
//             left over: the highest numbers.
// Invariants  Every link of the network is in one run; no port (no side of one) is in two.
// Complexity  O(m log m).
// Errors      kInvalidArgument: switches, or two-way cables where a link has no reverse.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct PortEnd {
  int32_t rank = 0, port = 0;
  friend auto operator<=>(const PortEnd&, const PortEnd&) = default;
};

// A cable, or a fibre from `from` to `to`.
struct CableRun {
  PortEnd from, to;
  friend auto operator<=>(const CableRun&, const CableRun&) = default;
};

Result<std::vector<CableRun>> CablingOf(const Topology& topology, bool two_way);

// A header and a line a run, numbered from 1: "cable,rank_a,port_a,rank_b,port_b", or
// "fibre,from_rank,from_port,to_rank,to_port".
std::string CablingCsv(const std::vector<CableRun>& runs, bool two_way);

}  // namespace tutti

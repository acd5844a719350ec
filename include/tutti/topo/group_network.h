// The network as some of its ranks see it: they are the ranks, and the others only forward or are not
// there. What is known of collectives of all ranks (bounds, flows, routers, schedules) thereby holds for a
// group of them.
//
// Model       `ranks` become ranks 0, 1, ... in the order given. Each other node becomes a switch, or, where
//             `leave_out` says so, goes with its links. Bandwidths, alphas and names stay, and the host
//             limits of the ranks. The host limit of a rank that becomes a switch is gone: HostForwarding()
//             of topo/operators.h first, where it is to hold for what the rank passes on.
// Invariants  node_of is one node a node of `network`, link_of one link a link: where they are in the
//             network that was given.
//             Where all ranks stay in order and nothing goes, it is the network itself.
// Complexity  O(nodes + links log links).
// Errors      kInvalidArgument: a rank twice, or none. kInfeasible: without those that are left out some
//             rank does not reach another (names both).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct GroupNetwork {
  Topology network;
  std::vector<NodeId> node_of;
  std::vector<LinkId> link_of;
};

Result<GroupNetwork> MakeGroupNetwork(const Topology& topology, std::span<const NodeId> ranks,
                                      const std::function<bool(NodeId)>& leave_out);

}  // namespace tutti

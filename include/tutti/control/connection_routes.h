// Which path connections between ranks take through switches: by the hash of ECMP, or pinned fairly.
//
// Model       A connection goes from a rank to another one over a shortest path (fewest links) through
//             switches alone; a link between the two is one. Of the links that begin one its rank
//             takes the widest (NVLink, not the NIC). ECMP: at its rank and at each switch a
//             connection takes one of the links that are left, chosen by a hash of both ends, its
//             number among the connections of these ends, the node and a seed; so it never changes
//             its path, and two may meet on one link. Fair: all at once by flow_assignment.h as flows
//             of one job, whose demand is the smaller of what their first and last link have for each
//             of the connections there.
// Complexity  Make(): O(ends x links). ByHash(): O(hops x links of a node). Fair(): O(connections x
//             paths x hops).
// Errors      kInvalidArgument: a connection that is none of two ranks, or has no path through
//             switches, by the names of its ends; Fair(): more than 2^24 hops in all paths.
// Threads     Immutable.
// Reference   [mccs] 4.3; hashing hop by hop is what switches do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct Connection {
  NodeId from, to;
};
using LinkPath = std::vector<LinkId>;

class ConnectionRoutes {
 public:
  // `network` must outlive it.
  static Result<ConnectionRoutes> Make(const Topology& network,
                                       std::span<const Connection> connections);

  // By connection.
  std::vector<LinkPath> ByHash(uint64_t seed) const;
  Result<std::vector<LinkPath>> Fair() const;
  // All paths of one, in the order of their links; stops beyond `most` links in all.
  std::vector<LinkPath> AllOf(size_t connection, size_t most) const;

 private:
  ConnectionRoutes() = default;
  int32_t HopsLeft(size_t connection, NodeId node) const;
  // Links that begin a shortest path from there.
  std::vector<LinkId> Next(size_t connection, NodeId node) const;

  const Topology* network_ = nullptr;
  std::vector<Connection> connections_;
  std::vector<int32_t> number_;             // by connection: among those of its ends
  std::vector<size_t> target_;              // by connection: row of distance_
  std::vector<std::vector<int32_t>> hops_;  // by target and node; -1: no path through switches
};

}  // namespace tutti

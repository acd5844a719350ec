// Routings of one path a pair, where the paths out of one rank form a tree.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/flow/network.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

// The link over which each node is reached; nothing of the source and of nodes that no way leads
// to.
using Tree = std::vector<LinkId>;
inline constexpr LinkId kNoLink{-1};

// kInfeasible, naming both ranks.
Error NoWay(const Topology& topology, NodeId source, NodeId destination);

// Adds what `source` sends to every rank, which goes over the tree; ends each pair.
// kInfeasible: a rank with demand is not in the tree (names the pair).
Status AddTreePaths(const Topology& topology, const DemandTable& demand, NodeId source,
                    const Tree& tree, RoutingBuilder& builder);

}  // namespace tutti

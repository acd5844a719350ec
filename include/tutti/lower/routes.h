// Routings as text that fabrics and their runtimes are programmed from. Formats:
// docs/formats/routes.md.
//
// Model       Routes per rank: for each rank and destination the chunks of their block and the way,
//             as egress ports, that each takes: for source-routed networks. Route tables: for each
//             link the routes that arrive over it and the link over which each goes on: for
//             networks that forward by table. A route is named (source, destination, number).
// Complexity  O(hops).
// Errors      kInvalidArgument: the routing is not of this network.
// Reference   [alltoall-mcf] 4 "Path-based Schedules".
#pragma once

#include <string>

#include "tutti/base/result.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

// The routing is proven (CheckRouting of verify/routing.h).
Result<std::string> ToRoutesPerRank(const Topology& topology, const Routing& routing);
Result<std::string> ToRouteTables(const Topology& topology, const Routing& routing);

}  // namespace tutti

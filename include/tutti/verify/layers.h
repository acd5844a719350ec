// The judge of layers: no packets of a routing can wait for each other in a circle.
//
// Model       Within a layer link b depends on link a where a path crosses a and then b. Every
//             layer's dependencies are free of cycles.
// Independence  Shares no code with synth.
// Complexity  O(hops log hops). Memory 16 bytes a hop.
// Errors      kInvalidArgument: the routing has no layers, or breaks R4. kInfeasible: names a layer
//             and the links of a cycle.
// Reference   [Dally and Seitz 1987].
#pragma once

#include "tutti/base/result.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

// The paths are chains of links (verify/routing.h).
Status CheckLayers(const Topology& topology, const Routing& routing);

}  // namespace tutti

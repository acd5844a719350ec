// Layers: gives each path of a routing a virtual channel so that packets cannot wait for each other
// in a circle.
//
// Model       A packet that crosses link a and then link b holds a's buffer while it waits for b's:
//             b's buffer depends on a's. A layer has buffers of its own at every link, and a packet
//             stays in the layer of its path. Where the dependencies of each layer have no cycle
//             there is no deadlock [Dally and Seitz 1987]. CheckLayers (verify/layers.h) proves it.
//             Least layers for given paths are NP-hard to find; a layering finds few.
// Complexity  O(hops x layers) and the upkeep of an order of the links, which is small once most
//             dependencies are there; dfsssp searches cycles in O(links x degree + hops) a layer
//             and cycle broken.
// Threads     One; the result depends on nothing but the routing.
// Errors      kInfeasible: needs more layers than allowed (says how many). kCancelled.
// Reference   [alltoall-mcf] section 6, "Deadlock-free routing".
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tutti/base/result.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct Layering {
  std::string_view name;         // as in `--layering name`
  std::string_view description;  // one line
  // Fills in routing.layer and routing.num_layers, as many as it takes.
  Status (*assign)(const Topology& topology, Routing& routing);
};

std::span<const Layering> Layerings();
// kNotFound lists the accepted names.
Result<const Layering*> FindLayering(std::string_view name);

constexpr int32_t kMaxRoutingLayers = 32767;

// What callers use. `max_layers` >= 1.
Status AssignLayers(const Layering& layering, const Topology& topology, int32_t max_layers,
                    Routing& routing);

// Throughput and layers together: a routing in at most so many layers, of as large a rate as found.
// Layers are filled with one path of each pair, then with the paths of `wanted`, the heaviest
// first, then with other shortest paths; what closes a cycle in every layer is left out. A pair
// that keeps no path gets one that follows the order of a layer's links. Then all paths that found
// a place are weighed anew (route/path_weights.h), to within `gap` of the best split over them;
// with max_paths the heaviest of each pair stay and are weighed once more. Weights are fine:
// LimitUnits of sched/routing_chunks.h makes chunks of them. Where [alltoall-mcf] section 6 asks
// how: this is ours. kInfeasible: some pair finds no path, as on a one-way ring in one layer (names
// the pair).
Result<Routing> RouteWithinLayers(const Topology& topology, const Routing& wanted,
                                  int32_t max_layers, double gap, int32_t max_paths = 0);

}  // namespace tutti

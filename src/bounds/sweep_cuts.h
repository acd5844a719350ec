// Cuts that a total order of the nodes suggests: the first k nodes against the rest, for all k.
// What they prove for all-to-all is exact; which orders are tried is a matter of taste.
#pragma once

#include <optional>
#include <vector>

#include "cut_bound.h"
#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

// The cut among all that are tried, in both directions, with the largest demand out of it / capacity out of it.
// `shards_out` counts demand weight. Tried are: each rank alone, and the prefixes of the orders by
// index, by each coordinate of a grid, and by distance from a few nodes. Capacities are in the unit
// of CutNetwork(topology).
// O(n + m) an order, O(n^2) with a demand matrix.
Cut BestSweepCut(const Topology& topology, const CutNetwork& network, const Collective& collective);

}  // namespace tutti

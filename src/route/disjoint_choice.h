// Which link-disjoint paths a pair uses, where those of the fewest hops leave much of the rate.
//
// Model       A pool of paths per pair, any of them; what is chosen are paths of one pair that share
//             no link. Paths that no chosen one crosses stay, whether they are needed or not.
// Method      The demands are split over the whole pool; each pair's heaviest path is chosen and
//             those that cross it go. Again, so that the others adapt, with the two heaviest, and
//             so on until no two paths of a pair cross; after the deadline all at once. A
//             heuristic: what it loses shows beside the limit of the flow.
// Complexity  As many splits (path_weights.h) as a pair has disjoint paths.
// Threads     As path_weights.h.
// Errors      kCancelled.
#pragma once

#include "tutti/base/deadline.h"
#include "tutti/base/result.h"
#include "tutti/flow/network.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

// The paths of both, pair by pair, each once; weights 1.
Routing MergePaths(const Routing& a, const Routing& b);

// `pool`: at least one path for each pair with demand.
Result<Routing> ChooseDisjoint(const Topology& topology, const DemandTable& demand, Routing pool,
                               double gap, const Deadline& deadline);

}  // namespace tutti

// How much each of given paths carries, so that the busiest link carries least: the path-based
// linear program, with a limit that proves how far from its optimum the answer is.
//
// Model       Each pair splits its demand over its paths at will. Largest load over bandwidth is
//             least, that is the rate largest.
// Proof       The limit follows from whole lengths of links: a unit of a pair uses up at least the
//             length of its shortest path in the set. Exact, however the lengths were found.
// Method      Small sets: the linear program itself, through the lp room. Larger ones: pair after
//             pair shifts flow from its longer paths to its shortest one while lengths grow with
//             the loads, an augmented Lagrangian as in mcf/link_lengths.h.
// Complexity  A pass O(hops); tens to hundreds of passes. 16 bytes a path besides the set.
// Threads     One; interruptible.
// Reference   [alltoall-mcf] 3.1.4; [Bertsekas 1982] for the multipliers.
#pragma once

#include <cstdint>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/flow/network.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct PathWeightOptions {
  double gap = 1e-3;       // stops there
  double max_seconds = 0;  // 0: no limit
  // Paths up to which the linear program is solved as such.
  int32_t max_program_paths = 2000;
};

struct WeightedPaths {
  Routing routing;  // of the paths that carry something
  Rational upper;   // no routing over the set has a larger rate
};

// `paths`: at least one for each pair with demand.
Result<WeightedPaths> WeighPaths(const Topology& topology, const DemandTable& demand,
                                 const Routing& paths, const PathWeightOptions& options);

}  // namespace tutti

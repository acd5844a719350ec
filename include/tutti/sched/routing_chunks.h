// Equal chunks from the weights of a routing: how finely a pair's data must be cut, and what it
// costs to cut it less finely or to use fewer paths.
//
// Model       A weight is a number of equal chunks of which a unit of demand has units_per_demand.
//             Weights that all have a common factor need that many times fewer.
// Complexity  O(hops) for each number of chunks tried, at most 16.
// Reference   [alltoall-mcf] 4 (chunks of the highest common factor of all weights).
#pragma once

#include <cstdint>

#include "tutti/base/rational.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

// Divides all weights and units_per_demand by their highest common factor.
void DivideByCommonFactor(Routing& routing);

// At most `max_paths` paths per pair, those of the largest weights (ties: the first), which take what
// the others carried in proportion to their weights. max_paths >= 1.
Routing KeepHeaviestPaths(const Routing& routing, int32_t max_paths);

// The same paths with weights rounded to at most `max_units` chunks a unit of demand; a path that
// rounds to nothing is gone. Chunks that rounding leaves over go where links are freest. Tries
// several numbers of chunks and keeps that of the best rate. max_units >= 1.
Routing LimitUnits(const Topology& topology, const Routing& routing, int64_t max_units);

// Chunks that a runtime can use where nobody says how many. Weights that need at most kFewUnits
// chunks stay as they are; others are rounded to at most 64, 128, ... kMaxChunkUnits, the first of
// these that loses less than kSmallLoss of the rate, or the last. Flows need up to 10^12 chunks to
// lose nothing, and blocks have no more bytes than 10^4 to 10^8.
inline constexpr int64_t kFewUnits = 64, kMaxChunkUnits = 1024;
inline constexpr int64_t kSmallLoss = 100;  // one part in so many
Routing LimitUnitsByLoss(const Topology& topology, const Routing& routing);

// Rate lost over the rate before: 0 where nothing is.
Rational RateLoss(const Topology& topology, const Routing& before, const Routing& after);

}  // namespace tutti

// Where the link lengths behind the all-to-all limit come from (flow_bound.h). Nothing here needs
// to be exact: whatever lengths come out, their limit is evaluated exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "all_pairs.h"
#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

inline constexpr int64_t kLongestLength = int64_t{1} << 30;

// In proportion to 1 / bandwidth: exactly where the least common multiple is small.
std::vector<int64_t> InverseBandwidths(const Topology& topology);

// Round 0, 1, .. of multiplicative weights: links grow by up to a 10 / (10 + round) part in
// proportion to load over bandwidth; then all are scaled so that the longest is kLongestLength. In
// integers, so that every machine finds the same.
void Lengthen(const Topology& topology, const std::vector<WideCapacity>& load, int64_t round,
              std::vector<int64_t>& lengths);

// The optimum by column generation: a linear program mixes the paths found so far, the prices of its
// links are lengths, the shortest paths under them are new columns. Starts from `start` and stops
// when the limit is within 1e-9 of the optimum, or after `max_rounds`. Nothing when the solver
// gives up.
// Reference   [alltoall-mcf] 3.1.2, equations (6) to (9), with paths in place of links as columns.
std::optional<std::vector<int64_t>> LengthsByColumnGeneration(const Topology& topology,
                                                              const Collective& collective,
                                                              std::vector<int64_t> start,
                                                              int32_t max_rounds);

}  // namespace tutti

// The optimum itself, proven: from an answer close to it to lengths in small whole numbers and to a
// flow that reaches exactly what they allow.
//
// Method      Averaged over the automorphisms, the lengths are a multiple of small integers where
//             the dual is unique; the smallest multiple whose limit lies in the gap is taken. The
//             flow, averaged too, kept to ways that are shortest under these lengths and counted in
//             units, misses the loads that it must have by a few units an orbit of bundles: a
//             linear system over shifts between two equally short ways, solved in rationals, sets
//             that right.
// Complexity  Gaussian elimination over the orbits of bundles, at most kMaxOrbits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mcf/network.h"
#include "mcf/source_flow.h"
#include "tutti/synth/concurrent_flow.h"

namespace tutti {

// What is close: one flow a rank, lengths and the limit that they prove.
struct NearOptimum {
  std::vector<SourceFlow> flows;
  const std::vector<int64_t>& lengths;
  Rational upper;
};

// Nothing where the method ends without a proof: too many orbits, lengths without a small common
// measure, numbers beyond 62 bits. Fills everything of the answer but f_lower,
// passes and seconds.
std::optional<ConcurrentFlow> ProveOptimum(const Topology& topology, const FlowNetwork& network,
                                           const DemandTable& demand,
                                           const std::vector<int64_t>& demand_matrix,
                                           const NearOptimum& near);

}  // namespace tutti

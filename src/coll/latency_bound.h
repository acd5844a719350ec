// How far a collective's data must travel: in hops, and in alphas added up along the way.
#pragma once

#include <cstdint>
#include <vector>

#include "sources.h"
#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct LatencyBound {
  int32_t steps = 0;
  int64_t alpha_ps = 0;  // the cheapest way, for the pair where that costs most
};

// Over the pairs of ranks (s, t) where t needs something that s has. Exact. `sources` are those of
// SourcesOf. O(n + m) a source with one alpha, O(m log n) otherwise; sources in parallel.
LatencyBound ComputeLatencyBound(const Topology& topology, const Collective& collective,
                                 const std::vector<Source>& sources);

}  // namespace tutti

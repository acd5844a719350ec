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
  int64_t alpha_ps = 0;      // the cheapest path, for the pair where that costs most
  int64_t min_alpha_ps = 0;  // of the links that count
};

// Whether a link into a switch counts like any other, or only the one out of it to a rank.
enum class Switches : uint8_t { kCount, kPassedAtOnce };

// Over the pairs of ranks (s, t) where t needs something that s has. Exact, but of networks with
// hundreds of thousands of unlike ranks, where it is the farthest pair of those that were looked at:
// what is proven then may be less than what is so. `sources` are those of SourcesOf. O(n + m) a
// source with one alpha, O(m log n) otherwise, of the sources that graph/farthest.h does not leave
// out; in parallel.
LatencyBound ComputeLatencyBound(const Topology& topology, const Collective& collective,
                                 const std::vector<Source>& sources,
                                 Switches switches = Switches::kCount);

}  // namespace tutti

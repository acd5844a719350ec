// What limits all-to-all and all-to-allv: no routing can serve the demands at a rate above
// f = sum of capacity x length / sum of demand x distance, whatever the lengths of the links are:
// each byte from s to t uses up at least distance(s, t) of the total capacity x length.
// The lengths that make it least are the dual of the concurrent flow problem.
//
// Method      Any lengths prove a limit, so lengths may come from anywhere; the limit is evaluated
//             on integer lengths and with exact sums. Tried are: 1 / bandwidth; what multiplicative
//             weights make of it (links on many shortest paths grow longer); the dual of the linear
//             program on small networks, which is tight; and cuts (length 1 on what crosses them).
// Complexity  One all-pairs shortest paths a round, sources in parallel.
// Reference   [alltoall-mcf] 3.1.2 for the linear program; the limit is its dual (weak duality).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cut_bound.h"
#include "sources.h"
#include "tutti/base/rational.h"
#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct FlowBound {
  Rational seconds_per_byte;  // time >= M * this
  Rational f_upper;           // the same as a rate, in the smallest link's bandwidth
  std::string reason;
  std::optional<Cut> cut;  // when it is the reason; `shards_out` counts demand weight
};

// `collective` is all-to-all or all-to-allv on at least two ranks; `sources` are its SourcesOf.
FlowBound ComputeFlowBound(const Topology& topology, const Collective& collective,
                           const std::vector<Source>& sources);

}  // namespace tutti

// The diameter as commands show it, which of networks with hundreds of thousands of unlike ranks is
// known between two limits only.
#pragma once

#include "common.h"
#include "tutti/graph/farthest.h"

namespace tutti::cli {

// In hops.
FarthestRange DiameterRangeOf(const Topology& topology);

// As DescribeTopology; where the limits differ, `diameter` is null and `diameter_range` has both.
void DescribeTopologyWith(const Topology& topology, const FarthestRange& diameter, Json& out);

}  // namespace tutti::cli

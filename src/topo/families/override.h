// override=: the bandwidth of single cables, named by their two ends.
#pragma once

#include <vector>

#include "families/family.h"

namespace tutti::topo {

// "leaf0-spine1:50GB/s": every link between the two nodes, in both directions. kInvalidArgument
// with the column: no such nodes, no link between them, no bandwidth, a cable named twice.
Status ApplyOverrides(const std::vector<NamedCable>& overrides, Draft& draft);

}  // namespace tutti::topo

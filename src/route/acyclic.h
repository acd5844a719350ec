// One source's flow without its cycles, in an order in which each bundle comes behind those that
// feed it.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/flow/concurrent_flow.h"
#include "tutti/flow/network.h"

namespace tutti {

// `units` of each bundle conserve what the source sends. What goes round in circles is taken away:
// loads only get smaller. O(cycles x (n + m)).
std::vector<BundleFlow> WithoutCycles(const FlowNetwork& network, std::vector<int64_t> units);

}  // namespace tutti

// Rule Z2 of tutti/verify/symmetric.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tutti/topo/topology.h"

namespace tutti::verify {

// Why `generators` do not generate a group in which exactly one symmetry of the network takes rank
// 0 to each rank; nullopt when they do. The network has no switches.
std::optional<std::string> FaultOfTranslations(const Topology& topology,
                                               const std::vector<std::vector<NodeId>>& generators);

}  // namespace tutti::verify

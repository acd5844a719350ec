// Shortest times from or to one rank, of all nodes, by Dijkstra's algorithm: O((nodes + links) log
// nodes).
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/topo/topology.h"

namespace tutti::ten {

// `time_of_link` >= 1 each.
std::vector<int64_t> TimesFrom(const Topology& topology, const std::vector<int64_t>& time_of_link,
                               NodeId source);
std::vector<int64_t> TimesTo(const Topology& topology, const std::vector<int64_t>& time_of_link,
                             NodeId target);

}  // namespace tutti::ten

// Shortest times from or to one rank, by Dijkstra's algorithm: O((ranks + links) log ranks).
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/topo/topology.h"

namespace tutti::ten {

// `time_of_link` >= 1 each; the topology has no switches.
std::vector<int64_t> TimesFrom(const Topology& topology, const std::vector<int64_t>& time_of_link,
                               NodeId source);
std::vector<int64_t> TimesTo(const Topology& topology, const std::vector<int64_t>& time_of_link,
                             NodeId target);

}  // namespace tutti::ten

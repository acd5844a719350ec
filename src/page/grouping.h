// Grouping: networks too large to be drawn, as a few groups of nodes.
//
// Model       A grid is cut into equal blocks, its longest side first, which form a grid again.
//             Of other networks with few enough switches each switch is a group with the ranks
//             whose first link leads to it; else nodes follow one another.
// Complexity  O(nodes + links).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/topo/topology.h"

namespace tutti {

struct Grouping {
  std::vector<int32_t> group_of;  // by node
  std::vector<std::string> names;
  std::optional<GridShape> grid;  // of the groups

  int32_t num_groups() const { return static_cast<int32_t>(names.size()); }
};

// At most `most` >= 1 groups, none empty.
Grouping GroupNodes(const Topology& topology, int32_t most);

}  // namespace tutti

// The grid that a network is drawn on: its own, or that of the torus or mesh of which it is what is left.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tutti/topo/topology.h"

namespace tutti {

struct DrawnGrid {
  GridShape shape;
  std::vector<int32_t> at;  // the position of each node; empty: node i is at position i

  int32_t PlaceOf(int32_t node) const { return at.empty() ? node : at[static_cast<size_t>(node)]; }
};

// The grid of the innermost network of without(torus(..)) or without(mesh(..)), however often: nodes keep
// its names there, which are positions. Only where that is so, and every link joins neighbours. O(nodes + links).
std::optional<DrawnGrid> DrawnGridOf(const Topology& topology);

// Whether two positions are neighbours: one step in one dimension, around it where the grid wraps.
bool AreNeighbours(const GridShape& grid, int32_t a, int32_t b);

}  // namespace tutti

// Where the nodes of a picture stand: by the structure of the network where it has one.
//
// Model       Grids as grids (of three sides and more as grids beside each other), rings and small
//             dense networks on a circle, switches in layers above their ranks or below the box of
//             theirs, the rest by forces: nodes push each other away, cables pull.
// Invariants  The same network gives the same places on every machine: the forces need no more than
//             + - * / and square roots.
// Complexity  O(nodes + cables), by forces O(rounds (nodes^2 + cables)) with fewer rounds for more.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "drawn_grid.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct NodePlaces {
  enum class Kind : uint8_t { kGrid, kCircle, kLayers, kForces };
  Kind kind = Kind::kForces;
  std::vector<double> x, y;  // by node, from 0 to 1; y downwards
};

// Nodes that are ranks come first. `cables`: pairs of nodes, each once.
NodePlaces PlaceNodes(int32_t nodes, int32_t ranks, const std::optional<DrawnGrid>& grid,
                      const std::vector<std::pair<int32_t, int32_t>>& cables);

}  // namespace tutti

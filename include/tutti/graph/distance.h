// Hop distances by breadth-first search, each O(n + m).
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/graph/digraph.h"

namespace tutti {

inline constexpr int32_t kUnreachable = -1;

// Hops from `source` to every node, kUnreachable where there is no way.
std::vector<int32_t> DistancesFrom(const Digraph& graph, NodeId source);
// Hops from every node to `target`.
std::vector<int32_t> DistancesTo(const Digraph& graph, NodeId target);

struct Connectivity {
  bool strongly_connected = true;
  // When not: no way leads from `from` to `to`.
  NodeId from{0}, to{0};
};
// O(n + m): one BFS each way from node 0.
Connectivity CheckStronglyConnected(const Digraph& graph);

}  // namespace tutti

// Small graphs for the tests of this room.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/graph/digraph.h"

namespace tutti {

inline Digraph MakeGraph(int32_t nodes, const std::vector<std::pair<int32_t, int32_t>>& arcs) {
  std::vector<Digraph::Arc> list;
  for (const auto& [tail, head] : arcs) list.emplace_back(NodeId{tail}, NodeId{head});
  return Digraph(nodes, list);
}

// Links i -> i + s modulo n for every step s.
inline Digraph MakeCirculant(int32_t nodes, const std::vector<int32_t>& steps) {
  std::vector<std::pair<int32_t, int32_t>> arcs;
  for (int32_t node = 0; node < nodes; ++node)
    for (int32_t step : steps) arcs.emplace_back(node, (node + step) % nodes);
  return MakeGraph(nodes, arcs);
}

// Any arcs without self-loops; parallel ones are welcome.
inline Digraph RandomGraph(int32_t nodes, int32_t arcs, uint64_t seed) {
  Random random(seed);
  std::vector<std::pair<int32_t, int32_t>> list;
  for (int32_t i = 0; i < arcs; ++i) {
    const auto tail = static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes)));
    const auto hop = 1 + static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes - 1)));
    list.emplace_back(tail, (tail + hop) % nodes);
  }
  return MakeGraph(nodes, list);
}

inline std::vector<int32_t> RandomPermutation(int32_t size, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> permutation;
  for (int32_t i = 0; i < size; ++i) permutation.push_back(i);
  for (size_t i = permutation.size(); i > 1; --i)
    std::swap(permutation[i - 1], permutation[random.Below(i)]);
  return permutation;
}

// The graph with node v called permutation[v].
inline Digraph Relabel(const Digraph& graph, const std::vector<int32_t>& permutation) {
  std::vector<std::pair<int32_t, int32_t>> arcs;
  for (LinkId link : graph.Links())
    arcs.emplace_back(permutation[graph.tail(link).index()], permutation[graph.head(link).index()]);
  return MakeGraph(graph.num_nodes(), arcs);
}

}  // namespace tutti

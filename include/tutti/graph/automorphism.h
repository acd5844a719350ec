// Symmetry of one directed multigraph: its automorphisms and the orbits of its nodes.
//
// Two nodes are in one orbit when an automorphism takes one to the other; each such claim rests on
// automorphisms checked link by link. That two nodes are in different orbits is proven by colour
// refinement or by an exhaustive search, unless the budget ended first.
//
// Complexity  On a vertex-transitive network O(log n) searches (isomorphism.h); on one without
//             symmetry one refinement a node, O(n m log n) at worst.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/graph/isomorphism.h"

namespace tutti {

struct NodeOrbits {
  std::vector<int32_t> orbit;           // of every node; numbered by their first node
  std::vector<NodeId> representatives;  // the first node of every orbit
  // Automorphisms that generate these orbits (not always the whole group).
  std::vector<Isomorphism> generators;
  // False: the budget ended first, and some of these orbits may be one.
  bool proven = true;

  int32_t num_orbits() const { return static_cast<int32_t>(representatives.size()); }
};

NodeOrbits FindNodeOrbits(const Digraph& graph, const GraphColors& colors = {},
                          int64_t budget = kIsomorphismBudget);

enum class Verdict { kYes, kNo, kUnknown };
// Whether all nodes are in one orbit.
Verdict IsVertexTransitive(const Digraph& graph, const GraphColors& colors = {},
                           int64_t budget = kIsomorphismBudget);

}  // namespace tutti

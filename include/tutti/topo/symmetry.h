// Symmetries of a topology: ranks go to ranks, switches to switches, links to links of the same
// bandwidth and alpha, and self-loops count. See graph/isomorphism.h for method, cost and budget.
#pragma once

#include "tutti/graph/automorphism.h"
#include "tutti/graph/isomorphism.h"
#include "tutti/topo/topology.h"

namespace tutti {

IsomorphismSearch FindIsomorphism(const Topology& from, const Topology& to,
                                  int64_t budget = kIsomorphismBudget);

// [direct-connect] Definition 6: an isomorphism f from TransposeTopology(topology) to `topology`,
// in their numbers of nodes and links, so that f(A^T) is a schedule on `topology` again (theorem
// 2).
IsomorphismSearch FindReverseSymmetry(const Topology& topology,
                                      int64_t budget = kIsomorphismBudget);

NodeOrbits FindNodeOrbits(const Topology& topology, int64_t budget = kIsomorphismBudget);

}  // namespace tutti

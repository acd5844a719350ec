// Spanning trees of all roots from those of a few, where shifting the ranks changes nothing.
//
// Model       With lanes that stay what they are when every rank r becomes r + g modulo N (equal
//             boxes of g ranks), trees of the roots 0 .. g - 1 shifted by g, 2 g, .. are trees of
//             all roots, and a lane carries what they all put on it: as many as trees of the first
//             g roots use lanes of its orbit. So only these are grown, each lane's orbit with the
//             capacity of the lane.
// Method      Level by level over the lanes that have most left, as many copies at once as go; no
//             flow is asked, so that it may fail where trees exist.
// Complexity  O(g (lanes + N)), and the trees: N a root.
#pragma once

#include <optional>
#include <vector>

#include "forest/packing.h"
#include "tutti/topo/topology.h"

namespace tutti::forest {

// Whether some shift of the ranks seems to leave the network as it is, by what hangs on its switches:
// a forecast of whether SmallestShift() (tree_network.h) finds one. O(divisors of N * m log m).
bool SeemsShifted(const Topology& topology);

// The trees of the first `shift` of `ranks` roots, shifted to all.
std::vector<PackedTree> AllShifted(const std::vector<PackedTree>& first, int32_t ranks,
                                   int32_t shift);

// nullopt: not found this way. `shift` is of SmallestShift().
std::optional<std::vector<PackedTree>> PackShifted(const TreeNetwork& network, int32_t shift);

}  // namespace tutti::forest

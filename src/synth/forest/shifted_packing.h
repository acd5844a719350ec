// Spanning trees of all roots from those of a few, where shifting the ranks changes nothing.
//
// Model       With lanes that stay what they are under a group of shifts of the ranks
//             (rank_shifts.h), trees of the first g roots shifted by every member are trees of all
//             roots, and a lane carries what they all put on it: as many as trees of the first
//             g roots use lanes of its orbit. So only these are grown, each lane's orbit with the
//             capacity of the lane.
// Method      Level by level over the lanes that have most left, as many copies at once as go; no
//             flow is asked, so that it may fail where trees exist.
// Complexity  O(g (lanes + N)), and the trees: N a root.
#pragma once

#include <optional>
#include <vector>

#include "forest/packing.h"
#include "forest/rank_shifts.h"
#include "tutti/topo/topology.h"

namespace tutti::forest {

// Whether some shift of the ranks seems to leave the network as it is, by what hangs on its switches:
// a forecast of whether SmallestShift() (tree_network.h) finds one. O(divisors of N * m log m).
bool SeemsShifted(const Topology& topology);

// The trees of the first roots, shifted to all.
std::vector<PackedTree> AllShifted(const std::vector<PackedTree>& first, const RankShifts& shifts);

// nullopt: not found this way. `shifts` leave the network as it is.
std::optional<std::vector<PackedTree>> PackShifted(const TreeNetwork& network,
                                                   const RankShifts& shifts);

}  // namespace tutti::forest

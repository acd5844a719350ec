// Spanning trees of equal boxes by exchange, where links are so full that trees grown level by level
// do not all fit (shifted_packing.h).
//
// Model       As shifted_packing.h: an orbit of lanes is used by the trees of the first ranks, one
//             by one, as often as its lane carries trees.
// Method      Trees grow breadth first over the orbits that are used no more than their share of
//             the trees grown so far, and over fuller ones where those lead nowhere. Then, while an
//             orbit carries more than it can, a rank that hangs on it hangs itself on a rank of the
//             same tree that does not stand below it, over an orbit that has room; or over a full one,
//             off which another rank goes first. Where that ends without a packing, trees grow box
//             by box instead: into each other box of `shift` ranks once, from the root's own where a lane there
//             has room, and inside of a box from where it was entered. That is all that lanes between boxes have
//             room for where the tightest cut is a box.
// Complexity  O(trees N d) to grow, d lanes a rank, and about as much to exchange; memory O(trees N).
#pragma once

#include <optional>
#include <vector>

#include "forest/packing.h"
#include "forest/rank_shifts.h"

namespace tutti::forest {

// nullopt: not found this way, or too many trees. `shifts` leave the network as it is.
std::optional<std::vector<PackedTree>> PackByExchange(const TreeNetwork& network,
                                                      const RankShifts& shifts);

}  // namespace tutti::forest

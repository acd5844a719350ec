// Spanning trees packed: every root gets its trees, no lane carries more than it can.
//
// Model       A class (R, m) is m copies of one partial tree on the ranks R. A lane (x, y) with x
//             in R and y not may be added to mu copies, mu the smallest of m, what the lane has
//             left, and the slack of every set of ranks that holds y and not x; the other m - mu
//             copies go on as a class of their own. All slacks come of one flow into y with x as a
//             source without limit and the other classes as supplies. Some lane always has mu > 0.
// Method      One class at a time until it spans all. Of the lanes that serve all copies the one
//             nearest to the root is taken, so that trees stay low; only where none serves all, the
//             one that serves most.
// Complexity  At least one flow a lane of a tree, N - 1 a class; N plus a few classes on balanced
//             networks. Memory O(N trees).
//             Of many ranks in equal boxes the trees of one box stand for all, and with
//             translations those of one rank (shifted_packing.h, exchange_packing.h), without any
//             flow.
// Errors      kCancelled; kInfeasible: too many ranks otherwise.
// Reference   Edmonds (1973); Berczi, Frank, "Packing arborescences" (2010) for the multiplicities;
//             Tarjan (1974) for the slack by a flow.
#pragma once

#include <cstdint>
#include <vector>

#include "forest/tree_network.h"
#include "tutti/base/result.h"

namespace tutti::forest {

struct TreeBranch {
  int32_t tail, head;
};

struct PackedTree {
  NodeId root;
  int64_t copies = 1;
  std::vector<TreeBranch> branches;  // tails before heads
};

// Up to so few ranks trees are packed by flows, which find lower ones.
inline constexpr int32_t kFewRanks = 64;

// `network` has no lanes of switches and passes FlowsSuffice(). kQuick: kInfeasible where it would
// take flows, many of them, among more than kFewRanks. `topology`: that it was counted on, whose
// translations may help.
Result<std::vector<PackedTree>> PackForest(const TreeNetwork& network, const Topology& topology,
                                           Effort effort = Effort::kAny);

}  // namespace tutti::forest

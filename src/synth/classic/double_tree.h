// The two trees of the double binary tree algorithm, over logical ranks; dbt.cc says how they are
// made.
#pragma once

#include <array>
#include <vector>

#include "tutti/base/ids.h"

namespace tutti::classic {

struct TreeEdge {
  NodeId parent, child;
  friend bool operator==(const TreeEdge&, const TreeEdge&) = default;
};

// Both trees span all ranks from `root`; edges come parent before child, num_ranks - 1 each. No
// rank but the root has children in both. Depth at most 1 + ceil(log2 num_ranks). num_ranks >= 1.
std::array<std::vector<TreeEdge>, 2> DoubleTree(int32_t num_ranks, NodeId root);

}  // namespace tutti::classic

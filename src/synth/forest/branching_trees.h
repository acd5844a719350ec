// Trees for all-reduce where switches reduce, when no switch must be in all of them.
//
// Model       A tree joins all ranks over links whose twins it uses, too: sums go up, results down. It may
//             branch at ranks and at switches that reduce; through other switches it only passes.
//             As many trees as asked for, all of one size, so that the busiest link carries little.
// Method      One tree after the other under prices: every link costs more the more of its capacity
//             is taken (by a constant to the power of its load). A tree grows from a rank by the
//             cheapest way to a rank that it lacks. Then the node from which the others are reached in the
//             fewest branches becomes the root.
// Exactness   A heuristic: its load is counted exactly, nothing is proven of it.
// Complexity  A search of the network for every rank of every tree.
// Reference   Takahashi, Matsuyama (1980) for one tree; Plotkin, Shmoys, Tardos (1991) for prices.
#pragma once

#include <cstdint>
#include <vector>

#include "forest/routed_trees.h"
#include "tutti/topo/topology.h"

namespace tutti::forest {

// `twins`: of each link, one of the same bandwidth back. `count` trees, numbered over all of them
// root after root as Forest::over_all_shards wants.
std::vector<RoutedTree> BranchingTrees(const Topology& topology, const std::vector<LinkId>& twins,
                                       int32_t count);

}  // namespace tutti::forest

// Packed trees laid over real links: every branch has one way, every tree one stretch of the shard.
#pragma once

#include <cstdint>
#include <vector>

#include "forest/packing.h"
#include "forest/tree_network.h"
#include "tutti/topo/topology.h"

namespace tutti::forest {

struct RoutedBranch {
  NodeId tail, head;          // ranks, or switches that reduce
  std::vector<LinkId> links;  // from tail to head, all between through switches, none twice
};

struct RoutedTree {
  NodeId root;
  int64_t first = 0, copies = 1;       // of the trees of its root, which are numbered from 0
  std::vector<RoutedBranch> branches;  // tails before heads
};

// Trees are cut where the paths of their lanes end. `network` is the one that was packed.
std::vector<RoutedTree> RouteTrees(const Topology& topology, TreeNetwork network,
                                   const std::vector<PackedTree>& packed);

// The same trees on another topology of the same nodes: link l becomes link_map[l], and what ran
// from tail to head runs from head to tail. To reduce, branches then go from leaves to the root:
// each from `head` to `tail`, its links in that order.
std::vector<RoutedTree> Turned(std::vector<RoutedTree> trees, const std::vector<LinkId>& link_map);

}  // namespace tutti::forest

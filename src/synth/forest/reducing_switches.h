// Switches that reduce, seen by trees: as ranks that contribute nothing.
//
// Model       A switch that reduces (T9) adds what comes in and hands what it has to several ports,
//             so a tree may branch in it as it branches at a rank. The network in which these
//             switches are ranks behind the real ones is therefore packed as any other, with real
//             ranks alone as roots. Trees of that network span these switches, too, which must not cost
//             any rate: only those count as ranks whose links together bring in, and take out, all
//             that is spread. A tree that ends at such a switch loses that branch again. Other switches
//             stay what they are.
// Complexity  O(n + m), and O(branches) to come back.
#pragma once

#include <vector>

#include "forest/routed_trees.h"
#include "tutti/topo/topology.h"

namespace tutti::forest {

struct SwitchesAsRanks {
  Topology topology;            // no name, no origin
  int32_t num_roots = 0;        // real ranks: the first ones, with their own numbers
  std::vector<NodeId> node_of;  // of its nodes, in the network itself
  std::vector<LinkId> link_of;  // of its links
};

// `rate`: bytes a second that a switch must be able to take in and give out to count as a rank.
SwitchesAsRanks WithSwitchesAsRanks(const Topology& topology, const Rational& rate);

// Trees of `from` on the network itself, without branches that lead to switches alone.
std::vector<RoutedTree> OnRealNodes(const SwitchesAsRanks& from, std::vector<RoutedTree> trees);

}  // namespace tutti::forest

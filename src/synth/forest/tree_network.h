// The network as a forest of trees sees it: how many trees each link carries, in whole numbers.
//
// Model       Every root r sends trees_of[r] spanning trees, all of one rate, and a link carries as
//             many of them as its bandwidth has room for. All-gather and reduce-scatter have k
//             trees at every rank, broadcast and reduce k at the root. Trees exist exactly when
//             every set of nodes that holds a rank takes in, or starts, all trees (Edmonds, where
//             there are no switches): the condition that FlowsSuffice() tests.
// Rate        With (ranks in S) / (capacity out of S) = p / q at the tightest cut, capacities in
//             their common divisor, k = q trees a root and p b trees on a link of capacity b are
//             the optimum, exactly. k is cut down where it would leave 62 bits, or to what is
//             asked for: then a link carries floor(U b) trees, U as small as it may be within
//             one part in 1024.
// Complexity  The cut is that of bounds/bounds.h; a test of feasibility is one flow a rank, each
//             of which ends at the rank before it.
// Reference   [forestcoll] sections on optimality and on edge splitting; Edmonds, "Edge-disjoint
//             branchings" (1973). Deviation: k is not bounded by the number of links.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::forest {

// kQuick: a stage that would take long is given up instead (kInfeasible).
enum class Effort : uint8_t { kAny, kQuick };

// A path between two nodes with nothing but switches between them, and how many trees may take it.
struct LanePath {
  std::vector<LinkId> links;
  int64_t trees = 0;
};

// All paths from one node to another.
struct Lane {
  std::vector<LanePath> paths;
  int64_t trees() const;
};

struct TreeNetwork {
  int32_t num_nodes = 0, num_ranks = 0;
  std::map<std::pair<int32_t, int32_t>, Lane> lanes;  // by tail and head; none empty
  std::vector<int64_t> trees_of;                      // by root
  int64_t trees_at_each = 0;                          // [k] at every rank that is a root
  Rational trees_a_bandwidth = {};  // a link of b bytes/s has room for the floor of b times this
  Rational loss =
      {};  // of the optimum's rate: (time of these trees - optimum) / time of these trees
  int64_t total() const;  // of trees_of
};

// Whose trees are counted.
struct TreeRoots {
  int32_t count = 0;                 // the first so many ranks, of all-gather
  std::optional<NodeId> one = {};    // or this one, of broadcast
  const Topology* limits = nullptr;  // the network whose cut says how many: a switch that counts as
                                     // a rank here is none there
};

// `max_trees`: at most so many a root, 0 for the optimum. Where switches count as ranks the cut may
// be out of reach: then as LeastScale has it, with its loss. kInfeasible: host limits, which no tree
// keeps to.
Result<TreeNetwork> CountTrees(const Topology& topology, const TreeRoots& roots, int64_t max_trees);

// The fewest trees, a divisor of those of `optimum`, that reach the rate of the optimum as well: fewer
// trees are larger, and lower where links have room for several. None where there are none, or
// `optimum`, which is of broadcast from `root.one`, is none. One test of feasibility a divisor.
std::optional<TreeNetwork> FewestTrees(const Topology& topology, const TreeRoots& root,
                                       const TreeNetwork& optimum);

// Every set of nodes with a rank in it takes in, or starts, all trees. Of ranks that a shift maps onto
// each other one is tested.
bool FlowsSuffice(const TreeNetwork& network);

// The smallest g < N that divides N and shifts lanes and roots onto such of the same trees; none, or
// lanes of switches: nullopt. O(divisors of N * lanes log lanes).
std::optional<int32_t> SmallestShift(const TreeNetwork& network);

}  // namespace tutti::forest

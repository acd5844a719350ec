// The shape of a schedule, read off its transfers: rings, trees and their heights, what stays in a
// box and what crosses between boxes. The name of the algorithm is not looked at.
//
// Model       What a chunk does is a tree of ranks: to spread, from its root to all that get it; to
//             reduce, from all that contribute to where the sum ends. Switches between two ranks
//             are part of the branch. Chunks of one root that take the same branches are of one
//             tree.
// Boxes       By the names of ranks ("box0.gpu3" is in box0) where each has such a name, else ranks
//             that links above some bandwidth join.
// Complexity  O(chunks' transfers log transfers) time, O(transfers + trees) memory.
// Errors      None: the schedule keeps S1 .. S4. What is no tree (a rank that sends its sum twice)
//             is counted as such.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/sched/schedule.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct Boxes {
  enum class FoundBy : uint8_t { kNothing, kNames, kBandwidth };

  FoundBy found_by = FoundBy::kNothing;
  std::vector<int32_t> box_of =
      {};                           // by rank, from 0 in the order of their first ranks; else empty
  std::vector<int32_t> place = {};  // by rank: its number inside its box
  std::vector<int32_t> sizes = {};  // ranks, by box
  std::vector<std::string> names = {};  // by box; of kBandwidth that of the first rank

  bool some() const { return !sizes.empty(); }
  bool SameBox(NodeId a, NodeId b) const { return box_of[a.index()] == box_of[b.index()]; }
};
// Two boxes at least, one with two ranks at least; otherwise none.
Boxes FindBoxes(const Topology& topology);

// All that is spread, or all that is reduced.
struct TreesShape {
  int64_t trees = 0;                       // different ones; 0: nothing goes this way
  int32_t roots = 0;                       // ranks that have one
  int64_t not_trees = 0;                   // chunks whose transfers make no tree
  int32_t min_height = 0, max_height = 0;  // branches between a root and its farthest rank
  int32_t max_children = 0;                // at one rank
  // Cyclic orders of all ranks that every tree follows, from wherever it begins; 0: no rings.
  int32_t rings = 0;
};

struct BoxTraffic {
  Rational inside = {}, across = {};  // sent between ranks of one box, of two, in M
  Rational on_rail = {};              // of `across`, between ranks of the same place in their boxes
  int32_t min_crossings = 0, max_crossings = 0;  // branches of a tree between boxes
  std::string usual_way = {};  // of most paths between root and leaf: "to spread across, inside"
};

struct ScheduleShape {
  TreesShape spread = {}, reduced = {};
  BoxTraffic between = {};  // where there are boxes
};
ScheduleShape ShapeOf(const Topology& topology, const Schedule& schedule, const Boxes& boxes);

}  // namespace tutti

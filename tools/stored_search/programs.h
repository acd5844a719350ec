// Whether a graph has a bandwidth-optimal all-gather in so many steps, exactly up to the linear
// program's tolerance.
//
// Model       A shard is spread from its root along trees: each node receives it over one link in
//             one step, and sends only in later steps. A schedule is any fractional mix of trees of
//             every root; amounts a link and step alone would not do, since a node can send on only
//             the very pieces that it holds. N (N - 1) pieces cross N d links, so that the loads of
//             the busiest links add up to (N - 1) / d shards at least, which is TB = (N - 1) / N.
// Method      Column generation: trees are columns, priced exactly by a dynamic program over the
//             sets of nodes that hold a piece after each step. The prices prove a limit.
// Complexity  16 nodes, 3 to 5 steps: some hundred trees, a fraction of a second.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "small_digraph.h"

namespace tutti::stored_search {

// The step in which each node receives, counted from 1 (0 for the root), and the link it comes by
// (-1 for the root).
struct Tree {
  int root = 0;
  std::vector<int8_t> step, link;
};

inline constexpr double kLoadTolerance = 1e-5;

// A proven lower limit of the sum over steps of the busiest link's load, in shards. It is the least
// such sum, unless that is above `stop_above`: then the limit is above it, too. `steps` is at least
// the diameter.
double LeastLoad(const SmallDigraph& graph, int steps, double stop_above);

// Whether some mix of trees loads every link with at most step_loads[t] shards in step t + 1.
bool CanKeepTo(const SmallDigraph& graph, const std::vector<double>& step_loads);

// The cheapest tree of a root, exactly. `graph` outlives it.
class TreePricer {
 public:
  TreePricer(const SmallDigraph& graph, int steps);
  // Link l in step t (from 1) costs cost[(t - 1) * links + l] >= 0.
  Tree Cheapest(int root, const std::vector<double>& cost, double* total);

 private:
  struct Entry {
    double cost = std::numeric_limits<double>::infinity();
    uint32_t from = 0;
  };
  const SmallDigraph* graph_;
  int steps_;
  std::vector<uint16_t> next_;                  // [set] heads of links out of it
  std::vector<std::vector<uint16_t>> covered_;  // [hops][set] what it reaches in so many
  std::vector<std::vector<Entry>> best_;        // [step][set that holds the piece]
  std::vector<std::vector<uint32_t>> sets_;     // [step] those reached
};

}  // namespace tutti::stored_search

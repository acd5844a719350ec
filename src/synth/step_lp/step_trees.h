// The cheapest way to tell all ranks something within so many steps, when a link costs something
// else in each step.
//
// Model       In a step every rank that knows may tell others over its links, each of which knows
//             from the next step on. So a tree is a chain of sets, {source} = R_0, R_1, .., R_T =
//             all, and each rank that is new in R_t+1 was told over the cheapest link from R_t.
// Method      Shortest chains over the subsets of the ranks, step by step; sets from which the rest
//             is out of reach are left out. With a beam only so many of the cheapest sets of each step
//             are followed: then what is found may not be the cheapest.
// Units       Lengths are whole numbers >= 0 whose sum stays below 2^62.
// Complexity  O(T 3^N) a source, memory 12 T 2^N bytes.
// Threads     One an instance.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tutti/topo/topology.h"

namespace tutti::step_lp {

inline constexpr int32_t kMaxTreeRanks = 16;

struct StepBranch {
  LinkId link{0};
  int32_t step = 0;  // from 0
};
// In the order of steps; one branch into every rank but the source.
using StepTree = std::vector<StepBranch>;

class StepTrees {
 public:
  // `topology` has at most kMaxTreeRanks ranks, no switches, and must outlive it.
  StepTrees(const Topology& topology, int32_t steps);

  struct Found {
    int64_t length = 0;
    StepTree tree;
  };
  // `lengths`: of link l in step t at [t * links + l]. `beam`: 0 for the cheapest of all. nullopt: not
  // all ranks are within so many steps, or the beam lost them.
  std::optional<Found> Cheapest(NodeId source, std::span<const int64_t> lengths, size_t beam);

 private:
  using Set = uint32_t;

  int64_t& CostOf(int32_t step, Set set) {
    return cost_[(static_cast<size_t>(step) << static_cast<uint32_t>(ranks_)) + set];
  }
  Set& BeforeOf(int32_t step, Set set) {
    return before_[(static_cast<size_t>(step) << static_cast<uint32_t>(ranks_)) + set];
  }
  // The cheapest link into `rank` from `known`.
  LinkId LinkInto(NodeId rank, Set known, std::span<const int64_t> lengths, int32_t step) const;
  void Follow(int32_t step, Set known, std::span<const int64_t> lengths);

  const Topology& topology_;
  const int32_t ranks_, steps_;
  std::vector<std::vector<Set>> within_;  // [k][r]: who r reaches in k steps
  std::vector<Set> heads_;                // of each rank
  std::vector<int64_t> cost_;             // [step][set]
  std::vector<Set> before_;
  std::vector<std::vector<Set>> open_;  // reached sets of each step
  std::vector<int64_t> added_cost_;     // scratch
  std::vector<Set> added_;
};

}  // namespace tutti::step_lp

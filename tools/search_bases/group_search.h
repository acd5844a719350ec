// Searches the Cayley digraphs of metacyclic groups of one size and degree for cheap all-gathers.
//
// Model       Generator sets are drawn at random, first from all groups for a look at how fast
//             words spread in each, then from the groups where they spread fastest. A draw is given
//             up as soon as what is known of it is no better than something found (evaluator.h).
// Threads     One. The same seed gives the same result on any machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/rational.h"

namespace tutti {

struct GroupSearchOptions {
  int32_t ranks = 0, degree = 0;  // 2 <= ranks <= 4096, 1 <= degree <= 10
  bool bidirectional = false;     // generator sets that hold the inverse of each
  int64_t draws = 1'000'000;
  uint64_t seed = 1;
};

struct FoundDigraph {
  std::string recipe;
  int32_t tl = 0;
  Rational tb;  // in M/B, of the all-gather; a reduce-scatter takes no longer
};

// Ascending in tl, strictly descending in tb.
std::vector<FoundDigraph> SearchGroups(const GroupSearchOptions& options);

// Bandwidth-optimal Cayley digraphs of `ranks` ranks whose line digraph takes the fewest steps that
// any network of its size takes, and least time then: at most one, a line digraph of degree x ranks
// ranks. It may take less than theorem 10 says, which forgets that no rank sends to itself.
std::vector<FoundDigraph> SearchLines(const GroupSearchOptions& options);

}  // namespace tutti

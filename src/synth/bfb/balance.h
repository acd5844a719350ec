// The linear program of BFB, solved by counting: a receiver u gets, in step t, the shard of every
// source at distance t, each over those of u's in-links that a shortest path ends with; the time of
// the slowest in-link is to be least.
//
// Model       Sources that may use the same in-links are one *group*. On equal links the optimum is
//             U = max over sets S of in-links of (sources served only within S) / |S|, by max-flow
//             min-cut; on unequal links, where link l needs alpha_l + load * shard_l (alpha only
//             when used), the U at which the links of S together just carry that many sources,
//             again the largest over S. Links with alpha >= U carry nothing then: that is how a
//             link whose alpha alone dominates drops out.
// Units       Loads in shards, or in units of 1/P shard once P is chosen; times in whatever unit
//             the link costs have.
// Complexity  d in-links, G groups. Subsets: O(2^d d) additions. Flow: a few (Newton) max-flows of
//             G d edges.
// Reference   [direct-connect] 6.1 (1), E.1 theorem 19, E.2 (13), E.3 (14). Deviation: no LP
// solver;
//             (13) is solved exactly, since its flow is integral, and not by rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bfb/group_flow.h"
#include "tutti/base/rational.h"

namespace tutti {

// One receiver in one step.
struct LoadProblem {
  int32_t num_links = 0;
  // Group g: num_words() words from g * num_words() on, bit i of them for in-link i. Ascending.
  std::vector<uint64_t> masks;
  std::vector<int32_t> counts;      // sources of each group, >= 1
  std::vector<int32_t> link_class;  // index into the link costs; empty when links are all equal

  size_t num_words() const { return (static_cast<size_t>(num_links) + 63) / 64; }
  size_t num_groups() const { return counts.size(); }
  GroupLinks Links() const;
  friend bool operator==(const LoadProblem&, const LoadProblem&) = default;
};

// In lowest terms, den >= 1; small enough for products in 64 bits.
struct Load {
  int64_t num = 0, den = 1;
  friend bool operator==(const Load&, const Load&) = default;
  friend bool operator<(const Load& a, const Load& b) { return a.num * b.den < b.num * a.den; }
};

// [U_{u,t}] for equal links, in shards.
Load MinMaxLoad(const LoadProblem& problem);
// The two ways to it; subsets need num_links <= kMaxSubsetLinks.
inline constexpr int32_t kMaxSubsetLinks = 10;
Load MinMaxLoadBySubsets(const LoadProblem& problem);
Load MinMaxLoadByFlow(const LoadProblem& problem);

struct LinkCost {
  Rational alpha;  // time of a message without bytes
  Rational shard;  // time that one more shard takes, > 0
};

struct MinMaxTime {
  Rational time;  // [U_{u,t}] of (14)
  // A common denominator of the loads of the links of a set that is tight: every optimal allocation
  // puts exactly these loads on them. 0 where it does not fit in 64 bits.
  int64_t tight_denominator = 1;
};
MinMaxTime SolveMinMaxTime(const LoadProblem& problem, const std::vector<LinkCost>& costs);

// Loads in whole units of 1/P shard, P >= 1: `capacity[l]` for each in-link is the most that it
// carries when the slowest link is as fast as whole units allow.
struct WholeLoads {
  std::vector<int64_t> capacity;
  Rational time;  // reached; unequal links only
};
WholeLoads MinMaxUnits(const LoadProblem& problem, const Load& exact, int64_t units_per_shard);
WholeLoads MinMaxUnits(const LoadProblem& problem, const std::vector<LinkCost>& costs,
                       const Rational& exact, int64_t units_per_shard);

// The sources of a group laid end to end need counts[g] * P units: link `link` takes the next
// `units` of them.
struct Piece {
  int32_t group, link;
  int64_t units;
};
// Pieces in order of groups that fill each group and keep to the capacities, which must be
// feasible.
std::vector<Piece> Allocate(const LoadProblem& problem, const std::vector<int64_t>& capacity,
                            int64_t units_per_shard);

}  // namespace tutti

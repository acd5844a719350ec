// Topology finder: which networks of N ranks with d ports are worth wiring, and with which
// schedule.
//
// Model       Base topologies of known cost (src/design/bases.cc) are expanded by line digraph,
//             degree expansion, Cartesian power and product, and made bidirectional, until they
//             have N ranks and degree d. Costs are predicted by the theorems of the paper, so that
//             nothing is built to find out; of each size and degree only what may still win is
//             kept.
// Units       Steps, and M/B. `tl` and `tb` are those of the all-gather, as in Tables 4 and 7. A
//             reduce-scatter is an all-gather on the transpose, reversed in time, and costs
//             something else where the network is not reverse-symmetric; an all-reduce is one and
//             then the other.
// Invariants  A frontier is one of a collective: CostOf() it ascends in tl and strictly descends in
//             tb, so nobody on it is beaten in both. `recipe` parses (tutti/topo/expression.h) to a
//             network of `ranks` ranks and degree `degree`, and the synthesizer `algorithm` makes
//             schedules of exactly these costs on it.
// Complexity  One question: the divisors of N times the degrees up to d. All N up to 2000 for
//             d = 2, 4, 8 and 16: seconds.
// Threads     Base topologies are evaluated in parallel; the same answer for any number of threads.
// Errors      kInvalidArgument: ranks or degree out of range, a base that is not usable.
//             kInfeasible: no construction reaches this size and degree (names near ones).
//             kCancelled.
// Reference   [direct-connect] 5.4, Table 9, appendix D; A.6.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

// Networks beyond this are not searched: an all-gather schedule has at least N (N - 1) transfers.
inline constexpr int32_t kMaxDesignRanks = 1 << 20;
inline constexpr int32_t kMaxDesignDegree = 64;

struct DesignCost {
  int32_t tl = 0;  // steps
  Rational tb;     // in M/B
  friend bool operator==(const DesignCost&, const DesignCost&) = default;
};

struct Design {
  std::string recipe;     // expression of the topology
  std::string algorithm;  // name of a synthesizer that makes the schedule: "expand" or "bfb"
  int32_t ranks = 0, degree = 0;
  int32_t tl = 0;  // of the all-gather
  Rational tb;
  DesignCost reduce_scatter;
  int32_t diameter = 0;
  bool diameter_exact = true;      // otherwise at most that (FindAllFrontiers)
  bool bidirectional = false;      // every link has its reverse
  bool reverse_symmetric = false;  // isomorphic to its transpose, as far as that is known
  // Where the cost comes from, base first: one sentence a step of the recipe.
  std::vector<std::string> reasons;

  // All-gather, reduce-scatter or all-reduce.
  DesignCost CostOf(CollectiveKind collective) const;
};

struct OwnBase {
  std::string recipe;  // what stands for it in expressions: its path
  Topology topology;
};

struct DesignQuestion {
  int32_t ranks = 0, degree = 0;
  bool bidirectional_only = false;
  // What the frontier is one of: all-gather, reduce-scatter or all-reduce.
  CollectiveKind collective = CollectiveKind::kAllGather;
  // The asker's own bases: every network of the answer is made of one of them, alone or together
  // with known ones.
  std::vector<OwnBase> bases;
};

// kInvalidArgument, kResourceExhausted: what FindFrontier would say of such numbers.
Status CheckDesignSize(int64_t ranks, int64_t degree);

// The Pareto frontier in (tl, tb) of the collective. kInvalidArgument: another collective.
Result<std::vector<Design>> FindFrontier(const DesignQuestion& question);

struct SizedFrontier {
  int32_t ranks = 0, degree = 0;
  std::vector<Design> designs;  // of the all-gather
  std::vector<Design> reduce_scatter, all_reduce;
  // Among bidirectional networks, where all three collectives have the same; may be empty.
  std::vector<Design> bidirectional;
};
// Every size from 2 to max_ranks, for each degree in turn. Diameters that only the network itself
// tells stay upper limits, since building all networks would take longer than all the rest.
Result<std::vector<SizedFrontier>> FindAllFrontiers(const std::vector<int32_t>& degrees,
                                                    int32_t max_ranks);
// Makes inexact diameters exact, by building those networks.
Status MeasureDiameters(std::vector<Design>& designs);

}  // namespace tutti

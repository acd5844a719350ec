// What an expansion costs, before anything is built: exact, in O(1) or O(k) fractions.
//
// Model       An all-gather schedule on a regular network of equal links: TL steps and a TB in M/B,
//             as sched/cost.h counts them. Each function gives size, degree and cost of the
//             expanded network with the expanded schedule (expand.h).
// Units       tl in steps, tb in M/B of the network it belongs to.
// Exactness   DegreeCost, PowerCost, ProductCost and BidirectionalCost are what the expanded
//             schedule costs. LineCost is never less than it (theorem 7), and equal for
//             breadth-first schedules where every rank has two out-neighbours (theorem 10); degree
//             1 is a ring, whose line digraph is the same ring again.
// Invariants  (callers') ranks >= 1, degree >= 1, tl >= 0, times >= 1; the expanded number of ranks
//             stays below 2^62, degree and tl below 2^31.
// Reference   [direct-connect] section 5, appendix D: corollaries 7.1 and 10.1, theorems 11, 12,
// 13;
//             A.6.
#pragma once

#include <cstdint>
#include <span>

#include "tutti/base/rational.h"

namespace tutti {

struct ExpansionCost {
  int64_t ranks = 1;   // [N]
  int32_t degree = 1;  // [d] ports, self-loops included
  int32_t tl = 0;      // [TL / alpha]
  Rational tb;         // [TB]

  friend bool operator==(const ExpansionCost&, const ExpansionCost&) = default;
};

// (N - 1) / N: nothing is faster in bandwidth. [TB*]
Rational BestTb(int64_t ranks);

// line(G,times): d^k N ranks of degree d, TL + k, TB + d/(d-1) (1/N - 1/(d^k N)).
ExpansionCost LineCost(const ExpansionCost& base, int32_t times = 1);
// degree(G,n): n N ranks of degree n d, TL + 1, TB + (n-1)/(n N). degree(G,1) is G itself.
ExpansionCost DegreeCost(const ExpansionCost& base, int32_t n);
// power(G,n): N^n ranks of degree n d, n TL, TB N/(N-1) (N^n - 1)/N^n. N >= 2.
ExpansionCost PowerCost(const ExpansionCost& base, int32_t n);
// product(G,H,...): the product of the N, the sum of the d, the sum of the TL, and the best TB
// there is. True where every factor is simple, has at least 2 ranks and a breadth-first schedule of
// the best TB, which is the caller's to know (each tb must be BestTb, and tl the diameter).
ExpansionCost ProductCost(std::span<const ExpansionCost> factors);
// bidirectional(G) of a reverse-symmetric G that is not bidirectional: twice the degree.
ExpansionCost BidirectionalCost(const ExpansionCost& base);

}  // namespace tutti

// Generalized Kautz digraphs: the exact cost of breadth-first broadcast, counted over intervals.
//
// Method      Rank x sends to -d x - a (mod m), 1 <= a <= d: an interval. So the ends of the walks
//             of length t from v are an interval I_t(v) of d^t numbers, and what is at distance t
//             from v is I_t(v) without the t intervals before. In-link k of u (1 <= k <= d) comes
//             from (k m - u - a) / d; those that end a shortest way from v to u are the k for which
//             u - k m lies in I_t(v) before it is taken modulo m: consecutive k, and the same ones
//             on each of the at most three pieces of [0, m) that the ends of I_t(v) make. The
//             largest load of u in step t is then the largest, over runs of consecutive in-links
//             (as a cycle), of the sources that only these can serve over the length of the run: of
//             any set of in-links, its best run does as well.
//             On the transpose rank v hears in step t of the numbers of I_t(v) that it had not
//             heard of, in the order of its out-links: out-link a is an arc of d^(t-1) numbers
//             modulo m, and where d^t > m the arcs overlap. All are of one length, so none covers
//             the end of another and more beyond it on both sides; hence of any set of arcs whose
//             sources nobody else serves, those sources fall apart into gaps between the other arcs
//             that share no arc of the set, and the largest load is that of one gap: from the end
//             of one arc to the start of another.
// Complexity  O(m D (D + d^2)) for diameter D, against O(m^2 d) for counting pairs.
// Reference   [direct-connect] F.2, (1), (2).
#pragma once

#include <cstdint>

#include "tutti/base/rational.h"

namespace tutti::design {

struct GenkautzCost {
  int32_t tl = 0;  // the diameter
  Rational tb;
  Rational reduce_scatter_tb;  // of the all-gather on the transpose, in as many steps
};
// degree >= 2, ranks > degree.
GenkautzCost ComputeGenkautzCost(int32_t degree, int32_t ranks);

}  // namespace tutti::design

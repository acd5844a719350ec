// The concurrent flow of all-to-all on circulant(n,a,b), exactly, at any size.
//
// Method      All ranks look alike, and a rank looks the same forwards and backwards: so some
//             optimal flow sends to the rank k further on the same way from everywhere, and the
//             links of one stride all carry the same. Let S_a and S_b be the strides of each kind
//             on the ways to all k; a rank has two links of each kind, so f = 2 / max(S_a, S_b).
//             By duality the smallest such maximum is the largest g(x) = sum over k of the
//             distance to k when a stride a is x long and a stride b 1 - x, which is concave and
//             piecewise linear in x: each x gives shortest paths and so a line above g, and the
//             point where the last falling and the last rising line meet is tried next, until it
//             lies on g.
// Exactness   Lengths are integers p and q - p for x = p/q; the answer is a fraction, not a limit.
// Complexity  O(n log n) a line, a few lines.
// Errors      kInvalidArgument: n < 5, or strides for which a rank has fewer than four neighbours
//             or does not reach all.
// Reference   [direct-connect] A.5; [alltoall-mcf] 3.1.2.
#pragma once

#include <cstdint>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"

namespace tutti::direct {

// In units of a link's bandwidth.
Result<Rational> CirculantFlow(int32_t ranks, int32_t a, int32_t b);

}  // namespace tutti::direct

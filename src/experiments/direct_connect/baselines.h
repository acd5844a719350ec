// The networks that [direct-connect] compares with at degree 4, and what their collectives take.
//
// Shifted ring        Two bidirectional rings over the same ranks, each all-reducing half of the
//                     data: strides 1 and p, p > 1 the smallest number prime to N, so that the
//                     second is one ring too. The paper does not say its shift; with this one the
//                     all-to-all of 1024 ranks is the paper's to its last digit but one.
// Double binary tree  NCCL's two trees: rank r of the first hangs below r with its lowest set bit
//                     cleared and the next one set, the second is the first mirrored (N even) or
//                     shifted by one (N odd). Inner ranks of one tree are leaves of the other, so
//                     that no rank has more than 4 ports. The paper's all-to-all is this network's.
// Its all-reduce      The paper prints 1434 us and no formula. The two-tree algorithm that it cites
//                     (Sanders, Speck, Traeff) reduces, then broadcasts; a rank serves its two
//                     trees in alternate steps, so that k pieces need 2h + k - 1 steps each way.
//                     With k best and M/k at half of B a step this is 0.3 % below the paper, and
//                     for large M takes 4 M/B, twice the optimum, as the paper measures.
#pragma once

#include <cstdint>
#include <string>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::direct {

// ranks >= 7 (6 ranks have but one ring).
int32_t ShiftedRingStride(int32_t ranks);  // [p]
std::string ShiftedRing(int32_t ranks);
// 2 ((N-1) alpha + (N-1)/N M/B): the traditional schedule, once round each ring.
Rational ShiftedRingAllReduceUs(int32_t ranks);

// ranks >= 2.
Result<Topology> DoubleBinaryTree(int32_t ranks);
// [h] Links from a root to the leaf farthest below it.
int32_t DoubleBinaryTreeHeight(int32_t ranks);

struct TreeTime {
  Rational us;
  int64_t pieces = 1;  // [k]
};
// 2 (2h + k - 1) (alpha + 2M/(Bk)): the two-tree algorithm, as above.
TreeTime TwoTreeAllReduce(int32_t ranks);
// (2h + k - 1) (alpha + 2M/(Bk)): each tree takes half of the data in k pieces over links of B/4,
// and broadcasts what has reached its root while the rest is still on its way up, as links with two
// directions allow.
TreeTime TreesInOnePass(int32_t ranks);
// 2h (alpha + 2M/B): the same without pieces.
Rational TreesInOnePieceUs(int32_t ranks);

// TL = sum of (a - 1), TB optimal: the traditional schedule of a torus of equal sides, one ring
// after the other.
Rational TraditionalTorusAllReduceUs(int32_t side);

}  // namespace tutti::direct

// The least TB that an all-gather of so many steps can have on a network, with a proof.
//
// Model       What a rank has is cut as finely as one likes, and every piece goes to all others
//             along a tree in steps (step_trees.h). x_T >= 0 says which part of its root's shard
//             goes along tree T; the parts of a shard add up to 1. In step t a link of bandwidth b
//             carries at most b U_t, and the sum of all U_t is made as small as it gets. Every
//             schedule of so many steps is such a choice of trees (of what comes twice the first counts), so
//             that no schedule without coding has a smaller TB.
// Method      Column generation: the linear program over the trees so far prices links and steps,
//             StepTrees finds the cheapest tree of each root under these prices, until none is cheaper
//             than what its root pays. Beams look for trees first, all sets decide.
// Symmetry    Where translations are found (topo/translations.h) the trees of rank 0, shifted, are
//             those of all, and a class of links is one link.
// Proof       Prices in whole numbers L: sum over roots of the cheapest tree's length, over the
//             largest sum over links of b L in one step, is a limit of the sum of all U_t, whatever
//             L is (each U_t (sum of b L) covers what is carried). The optimum's own prices, made
//             whole, prove it exactly where they fit; else prices rounded prove nearly as much. The shares are
//             solved for in fractions (LinearProgram::SolveExactly).
// Complexity  Some tens to hundreds of programs of (links x steps) rows, each with O(T 3^N) for a root.
// Errors      kInfeasible: switches, host limits, more than kMaxTreeRanks ranks, too few steps, too
//             much work. kResourceExhausted: the linear program failed. kCancelled.
// Reference   Ford, Fulkerson (1958) on columns by prices; [direct-connect] 4.1 for TL and TB.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "step_lp/step_trees.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/topo/translations.h"

namespace tutti::step_lp {

// A length for every link (or class of links) and step, in whole numbers.
struct StepLengths {
  std::vector<int64_t> lengths;  // as StepTrees::Cheapest has them
  Rational tb;                   // no schedule of so many steps has less, M/B
};

struct StepShares {
  struct Part {
    NodeId root{0};
    StepTree tree;
    Rational share;  // of its root's shard, > 0
  };
  int32_t steps = 0;
  std::vector<Part> parts;  // by root: of all, or of rank 0 alone where there are translations
  std::optional<Translations> translations;
  Rational tb;  // of these shares, M/B
  StepLengths proof;
  bool proven() const { return proof.tb == tb; }
};

// kInfeasible where Solve() of so many steps would say so.
Status CheckStepProgram(const Topology& topology, int32_t steps);
Result<StepShares> SolveStepProgram(const Topology& topology, int32_t steps);

// What `lengths` prove on `topology`, found by all sets anew; `translations`: they are the same for
// all links of a class, and rank 0 stands for all. The check of StepLengths::tb.
Rational ProvenTb(const Topology& topology, int32_t steps, const std::vector<int64_t>& lengths,
                  const std::optional<Translations>& translations);

}  // namespace tutti::step_lp

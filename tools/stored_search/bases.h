// The searches for the graphs that [direct-connect] draws but does not list.
#pragma once

#include <string>
#include <vector>

#include "small_digraph.h"
#include "tutti/base/result.h"

namespace tutti::stored_search {

// What the paper prints of an all-to-all flow value, to three digits.
struct FlowFigure {
  int factors = 1, lines = 0;  // of the `lines`-th line digraph of the `factors`-th power
  double value = 0;
};

// [diamond] Every 2-regular digraph of 8 nodes and diameter 3 up to isomorphism, judged by Tables 7
// and 9. Returns the least code of those that are left; prints what each figure left over.
Result<SmallDigraph> FindDiamond();

// [DBJMod(d,n)] Every way to join the self-loops and 2-cycles of the de Bruijn graph, each opened
// at one link, to one cycle without parallel links, judged in lexicographic order of the cycle
// (from node 0), the first 120 of them, by `steps` = TL, reverse-symmetry and `figures`. Several
// graphs are left: with figures the first, without them the first of least diameter and then of
// largest flow value.
Result<SmallDigraph> FindRewired(int degree, int digits, int steps, bool reverse_symmetric,
                                 const std::vector<FlowFigure>& figures);

}  // namespace tutti::stored_search

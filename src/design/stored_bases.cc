// Graphs with stored schedules: breadth-first broadcast is not bandwidth-optimal on them, and a
// schedule found by search is (tutti/synth/stored.h). On the transposes of those that are not
// reverse-symmetric no schedule is stored, and breadth-first broadcast serves.
#include "base.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::design {

void ListStored(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  struct Graph {
    const char* recipe;
    int32_t ranks, degree, tl, diameter;
    bool reverse_symmetric;
    int32_t back_tl = 0, back_num = 0, back_den = 1;  // on the transpose
  };
  static constexpr Graph kGraphs[] = {{"diamond", 8, 2, 3, 3, false, 3, 1, 1},
                                      {"debruijn_mod(2,3)", 8, 2, 4, 3, true},
                                      {"debruijn_mod(2,4)", 16, 2, 5, 4, false, 4, 11, 8},
                                      {"debruijn_mod(3,2)", 9, 3, 3, 2, false, 2, 7, 6},
                                      {"debruijn_mod(4,2)", 16, 4, 3, 3, false, 3, 23, 16}};
  for (const Graph& graph : kGraphs) {
    if (graph.ranks != ranks || graph.degree != degree) continue;
    BaseEntry entry;
    entry.recipe = graph.recipe;
    entry.ranks = ranks;
    entry.degree = degree;
    entry.tl = graph.tl;
    entry.tb = BestTb(ranks);
    entry.diameter = graph.diameter;
    entry.simple = true;
    entry.reverse_symmetric = graph.reverse_symmetric;
    if (!graph.reverse_symmetric)
      entry.reduce_scatter = {graph.back_tl, Rational(graph.back_num, graph.back_den)};
    entries.push_back(std::move(entry));
  }
}

}  // namespace tutti::design

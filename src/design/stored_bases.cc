// Graphs with stored schedules: breadth-first broadcast is not bandwidth-optimal on them, and a
// schedule found by search is (tutti/synth/stored.h).
#include "base.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::design {

void ListStored(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  struct Graph {
    const char* recipe;
    int32_t ranks, degree, tl, diameter;
    bool reverse_symmetric;
  };
  static constexpr Graph kGraphs[] = {{"diamond", 8, 2, 3, 3, false},
                                      {"debruijn_mod(2,3)", 8, 2, 4, 3, true},
                                      {"debruijn_mod(2,4)", 16, 2, 5, 4, false},
                                      {"debruijn_mod(3,2)", 9, 3, 3, 2, false},
                                      {"debruijn_mod(4,2)", 16, 4, 3, 3, false}};
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
    entries.push_back(std::move(entry));
  }
}

}  // namespace tutti::design

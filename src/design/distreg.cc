// The distance-regular graphs of [direct-connect] Table 8: breadth-first broadcast is
// bandwidth-optimal on every one (theorem 18).
#include <fmt/format.h>

#include "base.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::design {

void ListDistreg(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  struct Graph {
    const char* name;
    int32_t ranks, diameter;
  };
  static constexpr Graph kGraphs[] = {
      {"octahedron", 6, 2},    {"paley9", 9, 2},         {"k55minus", 10, 3},
      {"heawood3", 14, 3},     {"line_petersen", 15, 3}, {"cube4", 16, 4},
      {"line_heawood", 21, 3}, {"pg23", 26, 3},          {"ag24minus", 32, 4},
      {"odd4", 35, 3},         {"line_tutte8", 45, 4},   {"doubled_odd4", 70, 7},
      {"gq33", 80, 4},         {"line_tutte12", 189, 6}, {"gh33", 728, 6}};
  if (degree != 4) return;
  for (const Graph& graph : kGraphs) {
    if (graph.ranks != ranks) continue;
    BaseEntry entry;
    entry.recipe = fmt::format("distreg({})", graph.name);
    entry.ranks = ranks;
    entry.degree = degree;
    entry.tl = entry.diameter = graph.diameter;
    entry.tb = BestTb(ranks);
    entry.bidirectional = entry.reverse_symmetric = entry.simple = entry.bfb = true;
    entries.push_back(std::move(entry));
  }
}

}  // namespace tutti::design

// Circulants of degree 4: theorem 22 gives the offsets of the least diameter, and breadth-first
// broadcast is bandwidth-optimal on all of them (conjecture 1, proved for this degree).
#include <fmt/format.h>

#include "base.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::design {
namespace {

// [direct-connect] theorem 22: ceil((sqrt(2 n - 1) - 1) / 2), the least m with 2 m (m + 1) + 1 >=
// n.
int32_t LeastDiameterOfDegreeFour(int32_t ranks) {
  int32_t m = 1;
  while (2 * int64_t{m} * (m + 1) + 1 < ranks) ++m;
  return m;
}

}  // namespace

void ListCirculant(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  if (degree != 4 || ranks < 6) return;
  const int32_t m = LeastDiameterOfDegreeFour(ranks);
  BaseEntry entry;
  // Of six ranks, offset 3 would be half a port; 1 and 2 make the octahedron.
  entry.recipe =
      ranks == 6 ? "circulant(6,1,2)" : fmt::format("circulant({},{},{})", ranks, m, m + 1);
  entry.ranks = ranks;
  entry.degree = degree;
  entry.tl = entry.diameter = m;
  entry.tb = BestTb(ranks);
  entry.bidirectional = entry.reverse_symmetric = entry.simple = entry.bfb = true;
  entries.push_back(std::move(entry));
}

}  // namespace tutti::design

// Stages: line(uniring(d,m),k) is m d^k ranks in a ring of m stages. A rank is a walk of k links
// around the ring of d parallel links, and sends to the d walks that go one link further.
//
// Cost of breadth-first broadcast. From a rank, walks of length t < k end in d^t ranks of stage t,
// and from length k on in all of their stage; the farthest rank is heard of after m + k - 1 steps.
// With m > k no two lengths below k meet in one stage, so every rank is heard of by every other in
// the same pattern: in step t <= k over the one link that the walk's end says, d^(t-1) shards each,
// and in a later step over all d links alike. Every step is balanced, so TB = (N - 1)/N. (Theorem
// 10 would add 1/N for each line digraph. It forgets that no rank sends to itself: in the step in
// which its own shard would come round, all d links share what one of them saves. While m > k
// that makes up for the 1/N, and later it does not.) From k = m on, each line digraph adds 1/N of
// the network it is taken of, as the theorem says: with j = k - m, TB = (N - 1 + 1 + d + ... +
// d^j)/N.
#include <fmt/format.h>

#include "base.h"
#include "tutti/synth/expand_cost.h"

namespace tutti::design {

void ListStages(int32_t ranks, int32_t degree, std::vector<BaseEntry>& entries) {
  if (degree < 2) return;
  int64_t copies = degree;  // d^k
  for (int32_t lines = 1; 2 * copies <= ranks; ++lines, copies *= degree) {
    if (ranks % copies != 0) continue;
    const auto stages = static_cast<int32_t>(ranks / copies);
    BaseEntry entry;
    entry.recipe = fmt::format("line(uniring({},{}),{})", degree, stages, lines);
    entry.ranks = ranks;
    entry.degree = degree;
    entry.tl = entry.diameter = stages + lines - 1;
    entry.tb = BestTb(ranks);
    int64_t power = 1;
    for (int32_t beyond = stages; beyond <= lines; ++beyond, power *= degree)
      entry.tb += Rational(power, ranks);
    entry.bidirectional = stages == 2 && lines == 1;  // the complete bipartite graph
    entry.reverse_symmetric = entry.simple = entry.bfb = true;
    entry.expand = false;
    entries.push_back(std::move(entry));
  }
}

}  // namespace tutti::design

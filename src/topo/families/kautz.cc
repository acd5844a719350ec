// Kautz digraphs, generalized to any number of ranks, and these with their self-loops rewired.
#include <cstddef>
#include <vector>

#include "families/family.h"

namespace tutti::topo {
namespace {

// What becomes of the ports that a self-loop takes at both ends of a rank.
enum class SelfLoops { kKept, kCycle };

Status CheckGenkautzSizes(const FamilyCall& call) {
  if (Status status = call.CheckSize(0, 1); !status) return status;
  return call.CheckSize(1, SaturatingAdd(call.sizes[0], 1));
}

// The lower and the upper half taken in turn, every second pair of them the other way round: 0, h,
// h + 1, 1, 2, h + 2, ... In ascending order neighbours tend to have a link already, and shards
// that take the new one gain less.
std::vector<int64_t> InCycleOrder(const std::vector<int64_t>& ascending) {
  const size_t half = (ascending.size() + 1) / 2;
  std::vector<int64_t> cycle;
  for (size_t i = 0; i < half; ++i) {
    const size_t lower = i, upper = i + half;
    if (upper >= ascending.size()) {
      cycle.push_back(ascending[lower]);
    } else if (i % 2 == 0) {
      cycle.insert(cycle.end(), {ascending[lower], ascending[upper]});
    } else {
      cycle.insert(cycle.end(), {ascending[upper], ascending[lower]});
    }
  }
  return cycle;
}

// [direct-connect] Definition 16: rank x sends to -d x - a modulo m for 1 <= a <= d. No rank has
// two self-loops, as m > d.
Result<Draft> BuildGeneralizedKautz(const FamilyCall& call, int64_t degree, int64_t ranks,
                                    SelfLoops self_loops) {
  Result<Draft> draft = call.Start(ranks, 0, SaturatingMul(ranks, degree), 1);
  if (!draft) return draft;
  std::vector<int64_t> freed;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t a = 1; a <= degree; ++a) {
      const int64_t head = ranks - 1 - (degree * rank + a - 1) % ranks;
      if (head == rank && self_loops == SelfLoops::kCycle)
        freed.push_back(rank);
      else
        draft->AddLink(rank, head, call.links.Link(0));
    }
  const std::vector<int64_t> cycle = InCycleOrder(freed);
  for (size_t i = 0; i < cycle.size(); ++i)
    draft->AddLink(cycle[i], cycle[(i + 1) % cycle.size()], call.links.Link(0));
  return draft;
}

}  // namespace

Result<Draft> BuildGenkautz(const FamilyCall& call) {
  if (Status status = CheckGenkautzSizes(call); !status) return tl::unexpected(status.error());
  return BuildGeneralizedKautz(call, call.sizes[0], call.sizes[1], SelfLoops::kKept);
}

// A rank with a self-loop sends to the next of these in the order of InCycleOrder, the last to the
// first. There are g floor(d / g) of them, g = gcd(d + 1, m): none or at least two where d >= 2.
Result<Draft> BuildGenkautzMod(const FamilyCall& call) {
  if (Status status = CheckGenkautzSizes(call); !status) return tl::unexpected(status.error());
  return BuildGeneralizedKautz(call, call.sizes[0], call.sizes[1], SelfLoops::kCycle);
}

// [K(d,n)] The n-th line digraph of K_{d+1}, numbered as the generalized Kautz digraph of its size
// (the two are the same graph, [direct-connect] F.2).
Result<Draft> BuildKautz(const FamilyCall& call) {
  if (Status status = call.CheckSize(0, 1); !status) return tl::unexpected(status.error());
  if (Status status = call.CheckSize(1, 0); !status) return tl::unexpected(status.error());
  const int64_t degree = call.sizes[0];
  const int64_t ranks =
      SaturatingMul(SaturatingPow(degree, call.sizes[1]), SaturatingAdd(degree, 1));
  return BuildGeneralizedKautz(call, degree, ranks, SelfLoops::kKept);
}

}  // namespace tutti::topo

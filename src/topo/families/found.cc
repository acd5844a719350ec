// The graphs that [direct-connect] only draws (figures 19 and 20), found again by search:
// tools/stored_search makes these tables, docs/results/direct-connect-bases.md says what it
// searched and which of the paper's figures single them out.
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "families/family.h"

namespace tutti::topo {
namespace {

// A modified de Bruijn graph: what replaces the self-loops and 2-cycles of debruijn(degree,digits).
struct Rewiring {
  int64_t degree, digits;
  std::vector<int64_t> cycle;  // one long cycle through the ranks that were on them
};

const std::array<Rewiring, 4>& Rewirings() {
  static const std::array<Rewiring, 4> kTable{{
      {2, 3, {0, 5, 2, 7}},
      {2, 4, {0, 5, 10, 15}},
      {3, 2, {0, 3, 1, 8, 4, 2, 6, 7, 5}},
      {4, 2, {0, 4, 1, 2, 8, 5, 3, 12, 6, 9, 13, 7, 10, 15, 11, 14}},
  }};
  return kTable;
}

}  // namespace

// [Diamond] Figure 19: 8 ranks of degree 2, diameter 3.
Result<Draft> BuildDiamond(const FamilyCall& call) {
  constexpr std::array<std::array<int, 2>, 8> kHeads{
      {{1, 2}, {2, 3}, {4, 5}, {0, 6}, {0, 6}, {3, 7}, {5, 7}, {1, 4}}};
  Result<Draft> draft = call.Start(8, 0, 16, 1);
  if (!draft) return draft;
  for (size_t rank = 0; rank < kHeads.size(); ++rank)
    for (int head : kHeads[rank])
      draft->AddLink(static_cast<int64_t>(rank), head, call.links.Link(0));
  return draft;
}

// [DBJMod(d,n)] Figure 20.
Result<Draft> BuildDebruijnMod(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t degree = call.sizes[0];
  const Rewiring* rewiring = nullptr;
  std::string known;
  for (const Rewiring& one : Rewirings()) {
    if (one.degree == degree && one.digits == call.sizes[1]) rewiring = &one;
    known += fmt::format("{}({},{})", known.empty() ? "" : ", ", one.degree, one.digits);
  }
  if (rewiring == nullptr)
    return call.Fault(
        fmt::format("no graph is known for ({},{}); there are {}", degree, call.sizes[1], known));
  const int64_t ranks = SaturatingPow(degree, call.sizes[1]);
  Result<Draft> draft = call.Start(ranks, 0, SaturatingMul(ranks, degree), 1);
  if (!draft) return draft;
  const auto is_back = [&](int64_t rank, int64_t head) {
    return rank - degree * head % ranks >= 0 && rank - degree * head % ranks < degree;
  };
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t a = 0; a < degree; ++a) {
      const int64_t head = (degree * rank + a) % ranks;
      if (!is_back(rank, head)) draft->AddLink(rank, head, call.links.Link(0));
    }
  const std::vector<int64_t>& cycle = rewiring->cycle;
  for (size_t i = 0; i < cycle.size(); ++i)
    draft->AddLink(cycle[i], cycle[(i + 1) % cycle.size()], call.links.Link(0));
  return draft;
}

}  // namespace tutti::topo

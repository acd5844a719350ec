// The graphs of [direct-connect] Table 9 and appendix F.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "families/family.h"

namespace tutti::topo {

Result<Draft> BuildComplete(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t ranks = call.sizes[0];
  Result<Draft> draft = call.Start(ranks, 0, SaturatingMul(ranks, ranks - 1), 1);
  if (!draft) return draft;
  for (int64_t a = 0; a < ranks; ++a)
    for (int64_t b = a + 1; b < ranks; ++b) draft->AddCable(a, b, call.links.Link(0));
  return draft;
}

Result<Draft> BuildBipartite(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t side = call.sizes[0];
  Result<Draft> draft =
      call.Start(SaturatingMul(2, side), 0, SaturatingMul(2, SaturatingMul(side, side)), 1);
  if (!draft) return draft;
  for (int64_t a = 0; a < side; ++a)
    for (int64_t b = 0; b < side; ++b) draft->AddCable(a, side + b, call.links.Link(0));
  return draft;
}

// [H(n,q)] The Cartesian power of n complete graphs K_q; the first digit is the slowest.
Result<Draft> BuildHamming(const FamilyCall& call) {
  if (Status status = call.CheckSize(0, 1); !status) return tl::unexpected(status.error());
  if (Status status = call.CheckSize(1, 2); !status) return tl::unexpected(status.error());
  const int64_t digits = call.sizes[0];
  const int64_t base = call.sizes[1];
  const int64_t ranks = SaturatingPow(base, digits);
  const int64_t degree = SaturatingMul(digits, base - 1);
  Result<Draft> draft =
      call.Start(ranks, 0, SaturatingMul(ranks, degree), static_cast<size_t>(digits));
  if (!draft) return draft;
  int64_t stride = ranks;
  for (size_t d = 0; d < static_cast<size_t>(digits); ++d) {
    stride /= base;
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (int64_t digit = rank / stride % base + 1, step = 1; digit < base; ++digit, ++step)
        draft->AddCable(rank, rank + step * stride, call.links.Link(d));
  }
  return draft;
}

// [direct-connect] Definition 18. +a and -a are one cable when 2a = n. Dimension k is the offset
// a_k.
Result<Draft> BuildCirculant(const FamilyCall& call) {
  if (Status status = call.CheckSize(0, 2); !status) return tl::unexpected(status.error());
  const int64_t ranks = call.sizes[0];
  const std::vector<int64_t> offsets(call.sizes.begin() + 1, call.sizes.end());
  int64_t degree = 0;
  std::vector<int64_t> shorter;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (Status status = call.CheckSize(i + 1, 1, ranks - 1); !status)
      return tl::unexpected(status.error());
    shorter.push_back(std::min(offsets[i], ranks - offsets[i]));
    degree += 2 * offsets[i] == ranks ? 1 : 2;
  }
  std::vector<int64_t> sorted = shorter;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return call.Fault(
        fmt::format("the offset {} (or {}) stands there twice, which would be "
                    "parallel links; for those say parallel=2",
                    *twice, ranks - *twice));
  Result<Draft> draft = call.Start(ranks, 0, SaturatingMul(ranks, degree), offsets.size());
  if (!draft) return draft;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t cables = 2 * offsets[i] == ranks ? ranks / 2 : ranks;
    for (int64_t rank = 0; rank < cables; ++rank)
      draft->AddCable(rank, (rank + offsets[i]) % ranks, call.links.Link(i));
  }
  return draft;
}

// [direct-connect] Table 9 "Directed Circulant": d + 2 ranks of degree d; every rank sends to all
// but the one before it.
Result<Draft> BuildDircirculant(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t degree = call.sizes[0];
  const int64_t ranks = SaturatingAdd(degree, 2);
  Result<Draft> draft = call.Start(ranks, 0, SaturatingMul(ranks, degree), 1);
  if (!draft) return draft;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t step = 1; step <= degree; ++step)
      draft->AddLink(rank, (rank + step) % ranks, call.links.Link(0));
  return draft;
}

// [DBJ(d,n)] Rank x sends to d x + a modulo d^n for 0 <= a < d.
Result<Draft> BuildDebruijn(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t degree = call.sizes[0];
  const int64_t ranks = SaturatingPow(degree, call.sizes[1]);
  Result<Draft> draft = call.Start(ranks, 0, SaturatingMul(ranks, degree), 1);
  if (!draft) return draft;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t a = 0; a < degree; ++a)
      draft->AddLink(rank, (degree * rank + a) % ranks, call.links.Link(0));
  return draft;
}

}  // namespace tutti::topo

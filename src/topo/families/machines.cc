// Networks with several kinds of links, most of them with switches. A bandwidth of rfs, switch,
// switch2d and dragonfly is what one rank has in that dimension in total, shared over its links
// there; bw_per_link= gives a link's own.
#include <algorithm>
#include <array>

#include "families/family.h"

namespace tutti::topo {
namespace {

// Links of a line of `length` ranks, by kind.
int64_t RingCables(int64_t length) { return length > 2 ? length : length - 1; }
int64_t FullCables(int64_t length) { return SaturatingMul(length, length - 1) / 2; }

}  // namespace

// NVLinks between the GPUs of a DGX-1 with V100: a cube with some edges doubled and the diagonals
// of two faces, six NVLinks a GPU (counts as in the NCCL topology dump of NVIDIA/nccl issue 671).
Result<Draft> BuildDgx1(const FamilyCall& call) {
  constexpr std::array<std::array<int, 8>, 8> kNvlinks{{{0, 1, 1, 2, 2, 0, 0, 0},
                                                        {1, 0, 2, 1, 0, 2, 0, 0},
                                                        {1, 2, 0, 2, 0, 0, 1, 0},
                                                        {2, 1, 2, 0, 0, 0, 0, 1},
                                                        {2, 0, 0, 0, 0, 1, 1, 2},
                                                        {0, 2, 0, 0, 1, 0, 2, 1},
                                                        {0, 0, 1, 0, 1, 2, 0, 2},
                                                        {0, 0, 0, 1, 2, 1, 2, 0}}};
  Result<Draft> draft = call.Start(8, 0, 48, 1);
  if (!draft) return draft;
  for (size_t a = 0; a < 8; ++a)
    for (size_t b = 0; b < 8; ++b)
      for (int link = 0; link < kNvlinks[a][b]; ++link)
        draft->AddLink(static_cast<int64_t>(a), static_cast<int64_t>(b), call.links.Link(0));
  return draft;
}

// [tacos] Table II "3D-RFS". Ranks are row-major, the ring slowest; one switch for each (ring,
// fully connected) position.
Result<Draft> BuildRfs(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t a = call.sizes[0], b = call.sizes[1], c = call.sizes[2];
  const int64_t ranks = SaturatingMul(SaturatingMul(a, b), c);
  const int64_t switches = c > 1 ? SaturatingMul(a, b) : 0;
  const int64_t cables = SaturatingAdd(
      SaturatingMul(RingCables(a), SaturatingMul(b, c)),
      SaturatingAdd(SaturatingMul(FullCables(b), SaturatingMul(a, c)), c > 1 ? ranks : 0));
  Result<Draft> draft = call.Start(ranks, switches, SaturatingMul(2, cables), 3);
  if (!draft) return draft;
  const LinkSpec ring = call.links.Share(0, a > 2 ? 2 : 1);
  const LinkSpec full = call.links.Share(1, std::max<int64_t>(b - 1, 1));
  const LinkSpec up = call.links.Share(2, 1);
  const auto rank_at = [&](int64_t i, int64_t j, int64_t k) { return (i * b + j) * c + k; };
  for (int64_t i = 0; i < a; ++i)
    for (int64_t j = 0; j < b; ++j)
      for (int64_t k = 0; k < c; ++k) {
        const int64_t rank = rank_at(i, j, k);
        if (i < RingCables(a)) draft->AddCable(rank, rank_at((i + 1) % a, j, k), ring);
        for (int64_t other = j + 1; other < b; ++other)
          draft->AddCable(rank, rank_at(i, other, k), full);
        if (c > 1) draft->AddCable(rank, ranks + i * b + j, up);
      }
  return draft;
}

Result<Draft> BuildSwitch(const FamilyCall& call) {
  if (Status status = call.CheckSizes(2); !status) return tl::unexpected(status.error());
  const int64_t ranks = call.sizes[0];
  Result<Draft> draft = call.Start(ranks, 1, SaturatingMul(2, ranks), 1);
  if (!draft) return draft;
  for (int64_t rank = 0; rank < ranks; ++rank) draft->AddCable(rank, ranks, call.links.Share(0, 1));
  return draft;
}

// Ranks are row-major. Dimension 0 has one switch for each second coordinate, dimension 1 one for
// each first; a dimension of length 1 has none.
Result<Draft> BuildSwitch2d(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t a = call.sizes[0], b = call.sizes[1];
  const int64_t ranks = SaturatingMul(a, b);
  const int64_t first = a > 1 ? b : 0;
  const int64_t second = b > 1 ? a : 0;
  const int64_t cables = SaturatingAdd(a > 1 ? ranks : 0, b > 1 ? ranks : 0);
  Result<Draft> draft =
      call.Start(ranks, SaturatingAdd(first, second), SaturatingMul(2, cables), 2);
  if (!draft) return draft;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (a > 1) draft->AddCable(rank, ranks + rank % b, call.links.Share(0, 1));
    if (b > 1) draft->AddCable(rank, ranks + first + rank / b, call.links.Share(1, 1));
  }
  return draft;
}

// g groups of m ranks: complete inside a group, one cable between each pair of groups. The cables
// of a group go to the other groups in ascending order and to its members round-robin. A global
// cable takes the smaller share of its two ends.
Result<Draft> BuildDragonfly(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t groups = call.sizes[0], members = call.sizes[1];
  const int64_t cables =
      SaturatingAdd(SaturatingMul(groups, FullCables(members)), FullCables(groups));
  Result<Draft> draft = call.Start(SaturatingMul(groups, members), 0, SaturatingMul(2, cables), 2);
  if (!draft) return draft;
  const LinkSpec local = call.links.Share(0, std::max<int64_t>(members - 1, 1));
  const int64_t ends = groups - 1;
  const auto share_of = [&](int64_t member) {
    return call.links.Share(1, ends / members + (member < ends % members ? 1 : 0));
  };
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t base = group * members;
    for (int64_t x = 0; x < members; ++x)
      for (int64_t y = x + 1; y < members; ++y) draft->AddCable(base + x, base + y, local);
    for (int64_t other = group + 1; other < groups; ++other) {
      const int64_t here = (other - 1) % members;
      const int64_t there = group % members;
      LinkSpec global = share_of(here);
      global.bandwidth = std::min(global.bandwidth, share_of(there).bandwidth);
      draft->AddCable(base + here, other * members + there, global);
    }
  }
  return draft;
}

}  // namespace tutti::topo

// Rings, tori, meshes, hypercubes and their twisted forms. Ranks are row-major, the first dimension
// slowest. A dimension of length 2 is one cable, of length 1 nothing.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "families/family.h"

namespace tutti::topo {
namespace {

int64_t Product(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (int64_t dim : dims) product = SaturatingMul(product, dim);
  return product;
}

// Directed links of a grid; INT64_MAX when that is too many to count.
int64_t CountGridLinks(const std::vector<int64_t>& dims, bool wraps) {
  const int64_t ranks = Product(dims);
  int64_t links = 0;
  for (int64_t dim : dims) {
    const int64_t cables_in_a_line = wraps && dim > 2 ? dim : dim - 1;
    links = SaturatingAdd(links, SaturatingMul(2 * cables_in_a_line, ranks / dim));
  }
  return links;
}

void AddGridCables(Draft& draft, const std::vector<int64_t>& dims, bool wraps,
                   const LinkParameters& links) {
  int64_t stride = draft.num_ranks;
  for (size_t d = 0; d < dims.size(); ++d) {
    stride /= dims[d];
    const LinkSpec spec = links.Link(d);
    for (int64_t rank = 0; rank < draft.num_ranks; ++rank) {
      const int64_t position = rank / stride % dims[d];
      if (position + 1 < dims[d])
        draft.AddCable(rank, rank + stride, spec);
      else if (wraps && dims[d] > 2)
        draft.AddCable(rank, rank - position * stride, spec);
    }
  }
}

Result<Draft> BuildGrid(const FamilyCall& call, bool wraps) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const std::vector<int64_t>& dims = call.sizes;
  Result<Draft> draft = call.Start(Product(dims), 0, CountGridLinks(dims, wraps), dims.size());
  if (!draft) return draft;
  AddGridCables(*draft, dims, wraps, call.links);
  draft->grid = GridShape{{dims.begin(), dims.end()}, wraps};
  return draft;
}

Result<Draft> BuildRingOfCables(const FamilyCall& call, int64_t ranks, int64_t cables) {
  const int64_t neighbours = ranks > 2 ? ranks : ranks - 1;
  Result<Draft> draft =
      call.Start(ranks, 0, SaturatingMul(SaturatingMul(2, neighbours), cables), 1);
  if (!draft) return draft;
  for (int64_t rank = 0; rank < neighbours; ++rank)
    for (int64_t cable = 0; cable < cables; ++cable)
      draft->AddCable(rank, (rank + 1) % ranks, call.links.Link(0));
  return draft;
}

}  // namespace

Result<Draft> BuildRing(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  return BuildRingOfCables(call, call.sizes[0], 1);
}

Result<Draft> BuildBiring(const FamilyCall& call) {
  if (Status status = call.CheckSize(0, 2); !status) return tl::unexpected(status.error());
  if (Status status = call.CheckSize(1, 1); !status) return tl::unexpected(status.error());
  if (call.sizes[0] % 2 != 0)
    return call.FaultOfSize(0,
                            fmt::format("the degree {} is odd, wanted an even one", call.sizes[0]));
  return BuildRingOfCables(call, call.sizes[1], call.sizes[0] / 2);
}

Result<Draft> BuildUniring(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t degree = call.sizes[0];
  const int64_t ranks = call.sizes[1];
  Result<Draft> draft = call.Start(ranks, 0, SaturatingMul(degree, ranks), 1);
  if (!draft || ranks == 1) return draft;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t port = 0; port < degree; ++port)
      draft->AddLink(rank, (rank + 1) % ranks, call.links.Link(0));
  return draft;
}

Result<Draft> BuildTorus(const FamilyCall& call) { return BuildGrid(call, true); }
Result<Draft> BuildMesh(const FamilyCall& call) { return BuildGrid(call, false); }

Result<Draft> BuildHypercube(const FamilyCall& call) {
  if (Status status = call.CheckSizes(1); !status) return tl::unexpected(status.error());
  const int64_t ranks = SaturatingPow(2, call.sizes[0]);
  Result<Draft> draft =
      call.Start(ranks, 0, SaturatingMul(ranks, call.sizes[0]), static_cast<size_t>(call.sizes[0]));
  if (!draft) return draft;
  const std::vector<int64_t> dims(static_cast<size_t>(call.sizes[0]), 2);
  AddGridCables(*draft, dims, false, call.links);
  return draft;
}

// [Esfahanian, Ni, Sagan 1991] "The twisted n-cube": in the 4-cycle 0, 1, 3, 2 of the hypercube the
// two independent edges 0-1 and 2-3 are exchanged for 0-3 and 1-2, which takes one from the
// diameter.
Result<Draft> BuildTwistedHypercube(const FamilyCall& call) {
  if (Status status = call.CheckSizes(3); !status) return tl::unexpected(status.error());
  Result<Draft> draft = BuildHypercube(call);
  if (!draft) return draft;
  for (DraftLink& link : draft->links) {
    const bool crosses = link.tail < 4 && link.head < 4 && (link.tail ^ link.head) == 1;
    if (crosses) link.head ^= 2;
  }
  return draft;
}

// Twisted tori. Their dimensions have length k or 2k. A step off the end of a dimension of length k
// comes back at its start, as on a torus, but shifted by k along every dimension of length 2k.
// Two dimensions: 2b x b, the rectangular twisted torus of [Camara et al. 2010]. Three: k x k x 2k
// and k x 2k x 2k, in any order, as TPUv4 slices are wired [Jouppi et al. 2023]. All are edge
// symmetric.
Result<Draft> BuildTwistedTorus(const FamilyCall& call) {
  if (Status status = call.CheckSizes(2); !status) return tl::unexpected(status.error());
  const std::vector<int64_t>& dims = call.sizes;
  if (dims.size() == 2 && dims[0] / 2 != dims[1])
    return call.FaultOfSize(0, fmt::format("got {} x {}, wanted a = 2b", dims[0], dims[1]));
  const int64_t k = *std::min_element(dims.begin(), dims.end());
  const auto is_long = [k](int64_t dim) { return dim / 2 == k && dim % 2 == 0; };
  const bool fits =
      std::all_of(dims.begin(), dims.end(), [&](int64_t dim) { return dim == k || is_long(dim); });
  if (!fits || std::none_of(dims.begin(), dims.end(), is_long))
    return call.Fault(
        fmt::format("got {}, wanted lengths k and 2k, each at least once", fmt::join(dims, " x ")));
  const int64_t ranks = Product(dims);
  const auto num_dims = static_cast<int64_t>(dims.size());
  Result<Draft> draft = call.Start(ranks, 0, SaturatingMul(2 * num_dims, ranks), dims.size());
  if (!draft) return draft;
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * dims[d];
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t position = rank / strides[d] % dims[d];
      int64_t next = rank + strides[d];
      if (position + 1 == dims[d]) {
        next = rank - position * strides[d];
        for (size_t e = 0; e < dims.size() && dims[d] == k; ++e)
          if (dims[e] != k) next += (rank / strides[e] % dims[e] < k ? k : -k) * strides[e];
      }
      draft->AddCable(rank, next, call.links.Link(d));
    }
  return draft;
}

}  // namespace tutti::topo

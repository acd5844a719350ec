// Small networks for the tests of this room, built by hand so that they depend on no parser.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/base/rational.h"
#include "tutti/topo/topology.h"

namespace tutti::testing_networks {

struct Link {
  int32_t tail, head;
  LinkSpec spec;
};

struct Plain {
  int32_t num_ranks = 1, num_switches = 0;
  std::vector<Link> links = {};
  std::vector<int32_t> dims = {};  // of a grid
  bool wraps = false;
};

inline Topology MustBuild(const Plain& plain) {
  Topology::Builder builder(plain.num_ranks, plain.num_switches);
  for (const Link& link : plain.links)
    builder.AddLink(NodeId{link.tail}, NodeId{link.head}, link.spec);
  if (!plain.dims.empty()) builder.SetGrid({plain.dims, plain.wraps});
  Result<Topology> built = std::move(builder).Build();
  if (!built) {
    ADD_FAILURE() << built.error().message;
    std::abort();
  }
  return std::move(*built);
}

inline constexpr LinkSpec kUnit{.bandwidth = 1, .alpha_ps = 10};

inline void AddCable(Plain& plain, int32_t a, int32_t b, LinkSpec spec = kUnit) {
  plain.links.push_back({a, b, spec});
  plain.links.push_back({b, a, spec});
}

// Row-major, the first dimension slowest; a dimension of 2 is one cable.
inline Plain Grid(const std::vector<int32_t>& dims, bool wraps) {
  Plain plain;
  plain.dims = dims;
  plain.wraps = wraps;
  for (int32_t dim : dims) plain.num_ranks *= dim;
  int32_t stride = plain.num_ranks;
  for (int32_t dim : dims) {
    stride /= dim;
    for (int32_t rank = 0; rank < plain.num_ranks; ++rank) {
      const int32_t at = rank / stride % dim;
      if (at + 1 < dim) AddCable(plain, rank, rank + stride);
      if (at + 1 == dim && wraps && dim > 2) AddCable(plain, rank, rank - at * stride);
    }
  }
  return plain;
}

inline Plain UniRing(int32_t n) {
  Plain plain{.num_ranks = n};
  for (int32_t i = 0; i < n; ++i) plain.links.push_back({i, (i + 1) % n, kUnit});
  return plain;
}

inline Plain Hypercube(int32_t dimensions) {
  return Grid(std::vector<int32_t>(static_cast<size_t>(dimensions), 2), false);
}

inline Plain Complete(int32_t n) {
  Plain plain{.num_ranks = n};
  for (int32_t a = 0; a < n; ++a)
    for (int32_t b = 0; b < a; ++b) AddCable(plain, a, b);
  return plain;
}

inline Plain Bipartite(int32_t d) {
  Plain plain{.num_ranks = 2 * d};
  for (int32_t a = 0; a < d; ++a)
    for (int32_t b = 0; b < d; ++b) AddCable(plain, a, d + b);
  return plain;
}

inline Plain Star(int32_t n) {
  Plain plain{.num_ranks = n, .num_switches = 1};
  for (int32_t a = 0; a < n; ++a) AddCable(plain, a, n);
  return plain;
}

// Self-loops included, as ports.
inline Plain GenKautz(int32_t d, int32_t m) {
  Plain plain{.num_ranks = m};
  for (int32_t i = 0; i < m; ++i)
    for (int32_t a = 1; a <= d; ++a) plain.links.push_back({i, ((-d * i - a) % m + m) % m, kUnit});
  return plain;
}

// A Hamiltonian ring keeps it connected; other links at random, also parallel ones and self-loops.
inline Plain RandomNetwork(uint64_t seed) {
  Random random(seed);
  const auto draw = [&random](int32_t lo, int32_t hi) {
    return lo + static_cast<int32_t>(random.Below(static_cast<uint64_t>(hi - lo + 1)));
  };
  Plain plain;
  plain.num_ranks = draw(2, 7);
  plain.num_switches = draw(0, 8 - plain.num_ranks) * draw(0, 1);
  const int32_t n = plain.num_ranks + plain.num_switches;
  const int32_t most = draw(0, 1) == 0 ? 1 : 60;
  const auto spec = [&] {
    return LinkSpec{.bandwidth = draw(1, most) * 6, .alpha_ps = draw(0, 9)};
  };
  std::vector<int32_t> ring;
  for (int32_t i = 0; i < n; ++i) ring.push_back(i);
  for (int32_t i = n - 1; i > 0; --i)
    std::swap(ring[static_cast<size_t>(i)], ring[static_cast<size_t>(draw(0, i))]);
  for (size_t i = 0; i < ring.size(); ++i)
    plain.links.push_back({ring[i], ring[(i + 1) % ring.size()], spec()});
  for (int32_t left = draw(0, 3 * n); left > 0; --left)
    plain.links.push_back({draw(0, n - 1), draw(0, n - 1), spec()});
  return plain;
}

inline Plain Transposed(Plain plain) {
  for (Link& link : plain.links) std::swap(link.tail, link.head);
  return plain;
}

// Calls `use` with the part of each of `n` ranks and the number of parts, for every partition.
inline void ForEachPartition(int32_t n,
                             const std::function<void(const std::vector<int32_t>&, int32_t)>& use) {
  std::vector<int32_t> part(static_cast<size_t>(n), 0);
  const std::function<void(size_t, int32_t)> place = [&](size_t rank, int32_t num_parts) {
    if (rank == part.size()) {
      use(part, num_parts);
      return;
    }
    for (part[rank] = 0; part[rank] <= num_parts; ++part[rank])
      place(rank + 1, std::max(num_parts, part[rank] + 1));
  };
  place(0, 0);
}

// The largest (parts - 1) / capacity into the parts over all partitions of the ranks, by trying
// every one; where switches lie is tried for each part, too.
inline Rational TightestPartitionOfAll(const Topology& topology) {
  const auto n = static_cast<size_t>(topology.num_ranks());
  const auto placings = uint32_t{1}
                        << static_cast<uint32_t>(topology.num_nodes() - topology.num_ranks());
  Rational best;
  ForEachPartition(topology.num_ranks(), [&](const std::vector<int32_t>& part, int32_t num_parts) {
    const auto capacity_into = [&](int32_t wanted, uint32_t switches) {
      const auto inside = [&](NodeId node) {
        return topology.is_rank(node) ? part[node.index()] == wanted
                                      : (switches >> (node.index() - n) & 1) != 0;
      };
      int64_t capacity = 0;
      for (LinkId link : topology.Links())
        if (!inside(topology.tail(link)) && inside(topology.head(link)))
          capacity += topology.bandwidth(link);
      return capacity;
    };
    int64_t capacity = 0;
    for (int32_t wanted = 0; wanted < num_parts; ++wanted) {
      int64_t least = capacity_into(wanted, 0);
      for (uint32_t switches = 1; switches < placings; ++switches)
        least = std::min(least, capacity_into(wanted, switches));
      capacity += least;
    }
    if (num_parts > 1) best = std::max(best, Rational(num_parts - 1, capacity));
  });
  return best;
}

}  // namespace tutti::testing_networks

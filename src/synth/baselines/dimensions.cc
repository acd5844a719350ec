#include "baselines/dimensions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/topo/expression.h"

namespace tutti::baselines {
namespace {

using classic::ForwardBuilder;
using classic::Part;

constexpr int64_t kLongest = std::numeric_limits<int64_t>::max() / 4;

struct Shape {
  std::vector<int32_t> lengths;
  std::vector<DimensionKind> kinds;
};

Shape ShapeOfGrid(const GridShape& grid) {
  Shape shape{grid.dims, {}};
  for (int32_t length : grid.dims)
    shape.kinds.push_back(grid.wraps && length > 2 ? DimensionKind::kRing : DimensionKind::kLine);
  return shape;
}

// From the expression that made the network.
std::optional<Shape> ShapeOfExpression(const Topology& topology) {
  Result<ExpressionTree> tree = ParseExpressionTree(topology.expression());
  if (!tree) return std::nullopt;
  ExpressionTree base = *std::move(tree);
  if (base.family == "unwind" && base.operands.size() == 1) {
    ExpressionTree operand = base.operands[0];
    base = std::move(operand);
  }
  if (base.parallel != 1) return std::nullopt;
  std::vector<int64_t> lengths;
  if ((base.family == "rfs" && base.sizes.size() == 3) ||
      (base.family == "switch2d" && base.sizes.size() == 2))
    lengths = base.sizes;
  else if (base.family == "hypercube" && base.sizes.size() == 1 && base.sizes[0] < 32)
    lengths.assign(static_cast<size_t>(base.sizes[0]), 2);
  else if (base.family == "hamming" && base.sizes.size() == 2 && base.sizes[0] < 32)
    lengths.assign(static_cast<size_t>(base.sizes[0]), base.sizes[1]);
  else
    return std::nullopt;
  Shape shape;
  for (size_t d = 0; d < lengths.size(); ++d) {
    if (lengths[d] < 1 || lengths[d] > topology.num_ranks()) return std::nullopt;
    shape.lengths.push_back(static_cast<int32_t>(lengths[d]));
    const bool ring = base.family == "rfs" && d == 0 && lengths[d] > 2;
    shape.kinds.push_back(ring ? DimensionKind::kRing : DimensionKind::kOther);
  }
  return shape;
}

// The dimension in which two ranks differ, when it is one only.
std::optional<size_t> DifferenceOf(const std::vector<Dimension>& dims, NodeId a, NodeId b) {
  std::optional<size_t> found;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].CoordinateOf(a.value) == dims[d].CoordinateOf(b.value)) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

// The dimension of a link into `rank`; a switch belongs to the dimension of the ranks that it joins.
std::optional<size_t> DimensionOfLink(const Topology& topology, const std::vector<Dimension>& dims,
                                      LinkId link, NodeId rank) {
  const NodeId tail = topology.tail(link);
  if (topology.is_rank(tail)) return DifferenceOf(dims, tail, rank);
  for (LinkId other : topology.InLinks(tail))
    if (topology.is_rank(topology.tail(other)) && topology.tail(other) != rank)
      return DifferenceOf(dims, topology.tail(other), rank);
  return std::nullopt;
}

// Bandwidth and alpha of every dimension. A link that belongs to none, or a rank without a link in
// one, shows that the network is not the one of its name.
bool Measure(const Topology& topology, std::vector<Dimension>& dims) {
  for (Dimension& dim : dims) {
    dim.bandwidth = std::numeric_limits<int64_t>::max();
    dim.alpha_ps = 0;
  }
  for (NodeId rank : topology.Ranks()) {
    std::vector<int64_t> into(dims.size(), 0);
    for (LinkId link : topology.InLinks(rank)) {
      const std::optional<size_t> d = DimensionOfLink(topology, dims, link, rank);
      if (!d) return false;
      into[*d] += topology.bandwidth(link);
      dims[*d].alpha_ps = std::max(dims[*d].alpha_ps, topology.alpha_ps(link));
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (into[d] == 0) return false;
      dims[d].bandwidth = std::min(dims[d].bandwidth, into[d]);
    }
  }
  return true;
}

tl::unexpected<Error> NoDimensions(const Topology& topology, std::string_view algorithm) {
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("'{}' needs a network with dimensions: torus, mesh, hypercube, "
                               "hamming, rfs or switch2d, unwound or not; '{}' has none",
                               algorithm, topology.name()));
}

// Switches taken out leave the ranks where they were.
std::optional<Shape> ShapeOf(const Topology& topology) {
  const Topology& known = topology.original() ? *topology.original() : topology;
  return known.grid() ? ShapeOfGrid(*known.grid()) : ShapeOfExpression(known);
}

// What one chunk does in one dimension.
class Phase {
 public:
  Phase(ForwardBuilder& builder, const Dimension& dim) : builder_(builder), dim_(dim) {}

  void Run(ShardId shard, Part part, const std::vector<int32_t>& ranks, int32_t start) {
    for (int32_t rank : ranks) {
      // On a network that only bears the name of a regular one, paths may be longer than planned.
      const int32_t begin = std::max(start, builder_.Ready(NodeId{rank}, shard, part));
      if (dim_.kind == DimensionKind::kRing) {
        const int32_t middle = part.begin + (part.end - part.begin) / 2;
        Walk(shard, {part.begin, middle}, rank, +1, begin);
        Walk(shard, {middle, part.end}, rank, -1, begin);
      } else if (dim_.kind == DimensionKind::kLine) {
        Walk(shard, part, rank, +1, begin);
        Walk(shard, part, rank, -1, begin);
      } else {
        SendToAll(shard, part, rank, begin);
      }
    }
  }

 private:
  int32_t RankAt(int32_t rank, int32_t coordinate) const {
    return rank + (coordinate - dim_.CoordinateOf(rank)) * dim_.stride;
  }

  void Walk(ShardId shard, Part part, int32_t rank, int32_t way, int32_t start) {
    const bool round = dim_.kind == DimensionKind::kRing;
    for (int32_t hop = 1; hop < dim_.length; ++hop) {
      const int32_t next = dim_.CoordinateOf(rank) + way;
      if (!round && (next < 0 || next >= dim_.length)) return;
      const int32_t to = RankAt(rank, (next + dim_.length) % dim_.length);
      start = builder_.Send(NodeId{rank}, NodeId{to}, shard, part, start);
      rank = to;
    }
  }

  // The nearest first, so that the farther ones get it from them.
  void SendToAll(ShardId shard, Part part, int32_t rank, int32_t start) {
    const std::vector<int32_t> distance = builder_.Distances(NodeId{rank});
    std::vector<std::pair<int32_t, int32_t>> order;
    for (int32_t hop = 1; hop < dim_.length; ++hop) {
      const int32_t to = RankAt(rank, (dim_.CoordinateOf(rank) + hop) % dim_.length);
      order.emplace_back(distance[static_cast<size_t>(to)], to);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [hops, to] : order)
      builder_.Send(NodeId{rank}, NodeId{to}, shard, part, start);
  }

  ForwardBuilder& builder_;
  const Dimension& dim_;
};

// One chunk in one dimension.
struct Job {
  int32_t chunk = 0, dim = 0;
  int32_t step = 0;  // it starts in
};

// Which job goes first: the one that can start first in picoseconds, of these the one that carries
// least, of these the smaller chunk. Its step is the first one free in its dimension and for its
// chunk, so that slow dimensions do not hold up the steps of fast ones.
std::vector<Job> Arrange(const std::vector<Dimension>& dims, const Orders& orders,
                         const Rational& shard_bytes) {
  struct Progress {
    size_t done = 0;
    int64_t held = 1, ready_ps = 0;
    int32_t step = 0;
  };
  std::vector<Progress> chunks(orders.size());
  std::vector<int64_t> free_ps(dims.size(), 0);
  std::vector<int32_t> free_step(dims.size(), 0);
  std::vector<Job> jobs;
  for (size_t left = orders.size() * dims.size(); left > 0; --left) {
    size_t best = 0;
    int64_t best_ps = std::numeric_limits<int64_t>::max();
    for (size_t c = 0; c < chunks.size(); ++c) {
      if (chunks[c].done == dims.size()) continue;
      const auto d = static_cast<size_t>(orders[c][dims.size() - 1 - chunks[c].done]);
      const int64_t at = std::max(chunks[c].ready_ps, free_ps[d]);
      if (at > best_ps || (at == best_ps && chunks[c].held >= chunks[best].held)) continue;
      best = c;
      best_ps = at;
    }
    Progress& chunk = chunks[best];
    const int32_t d = orders[best][dims.size() - 1 - chunk.done];
    const auto at = static_cast<size_t>(d);
    const int32_t step = std::max(chunk.step, free_step[at]);
    jobs.push_back({static_cast<int32_t>(best), d, step});
    free_ps[at] = chunk.ready_ps =
        std::min(kLongest, best_ps + BusyPs(dims[at], chunk.held, shard_bytes));
    free_step[at] = chunk.step = step + dims[at].diameter;
    chunk.held *= dims[at].length;
    ++chunk.done;
  }
  return jobs;
}

void Emit(ForwardBuilder& builder, const std::vector<Dimension>& dims, const std::vector<Job>& jobs,
          int32_t chunks) {
  const int32_t width = builder.units_per_shard() / chunks;
  for (int32_t rank = 0; rank < builder.topology().num_ranks(); ++rank) {
    std::vector<std::vector<int32_t>> holders(static_cast<size_t>(chunks), {rank});
    for (const Job& job : jobs) {
      if (CancelRequested()) return;
      const Dimension& dim = dims[static_cast<size_t>(job.dim)];
      std::vector<int32_t>& ranks = holders[static_cast<size_t>(job.chunk)];
      Phase(builder, dim)
          .Run(ShardId{rank}, {job.chunk * width, (job.chunk + 1) * width}, ranks, job.step);
      ranks = dim.Extend(ranks);
    }
  }
}

// Steps that a collective within each dimension takes.
void FindDiameters(ForwardBuilder& builder, std::vector<Dimension>& dims) {
  for (Dimension& dim : dims) {
    dim.diameter = dim.length - 1;
    if (dim.kind != DimensionKind::kOther) continue;
    dim.diameter = 1;
    for (int32_t from = 0; from < dim.length; ++from) {
      const std::vector<int32_t>& distance = builder.Distances(NodeId{from * dim.stride});
      for (int32_t to = 0; to < dim.length; ++to)
        dim.diameter = std::max(
            dim.diameter, distance[static_cast<size_t>(to) * static_cast<size_t>(dim.stride)]);
    }
  }
}

}  // namespace

Result<std::vector<Dimension>> DimensionsOf(const Topology& topology, std::string_view algorithm) {
  const std::optional<Shape> shape = ShapeOf(topology);
  if (!shape) return NoDimensions(topology, algorithm);
  std::vector<Dimension> dims;
  int64_t stride = 1;
  for (size_t d = shape->lengths.size(); d-- > 0;) {
    if (stride > topology.num_ranks()) return NoDimensions(topology, algorithm);
    if (shape->lengths[d] > 1) {
      Dimension dim;
      dim.kind = shape->kinds[d];
      dim.length = shape->lengths[d];
      dim.stride = static_cast<int32_t>(stride);
      dims.push_back(dim);
    }
    stride *= shape->lengths[d];
  }
  std::reverse(dims.begin(), dims.end());
  if (stride != topology.num_ranks() || dims.empty() || !Measure(topology, dims))
    return NoDimensions(topology, algorithm);
  return dims;
}

int64_t BusyPs(const Dimension& dim, int64_t held, const Rational& shard_bytes) {
  const Rational bytes = Rational(held) * Rational(dim.length - 1) * shard_bytes;
  const int64_t waits = int64_t{dim.diameter} * dim.alpha_ps;
  return std::min(kLongest, waits + std::min(kLongest, BandwidthPs(bytes, dim.bandwidth)));
}

Result<Schedule> MakeByDimensions(std::string_view algorithm, const Topology& topology,
                                  const Collective& collective, const SynthOptions& options,
                                  const ChooseOrders& choose) {
  const Result<std::vector<Dimension>> known = DimensionsOf(topology, algorithm);
  if (!known) return tl::unexpected(known.error());
  const auto make = [&](const Topology& network, const Collective& forward,
                        const SynthOptions& how) -> Result<Schedule> {
    if (forward.kind() != CollectiveKind::kAllGather)
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("'{}' makes all-reduce over N shards, not over one", algorithm));
    // The transpose has the same dimensions and may have other bandwidths into a rank.
    std::vector<Dimension> dims = *known;
    if (!Measure(network, dims)) return NoDimensions(topology, algorithm);
    const Result<int32_t> chunks = classic::ChunksOf(how, kDefaultChunks, 1, algorithm, "");
    if (!chunks) return tl::unexpected(chunks.error());
    const bool rings = std::any_of(dims.begin(), dims.end(), [](const Dimension& dim) {
      return dim.kind == DimensionKind::kRing;
    });
    if (rings && *chunks > std::numeric_limits<int32_t>::max() / 2)
      return InvalidArgument(fmt::format("{} chunks are more than 2^30", *chunks));
    Result<ForwardBuilder> builder =
        ForwardBuilder::Make(network, forward, *chunks * (rings ? 2 : 1));
    if (!builder) return tl::unexpected(builder.error());
    FindDiameters(*builder, dims);
    const Rational bytes = forward.ShardBytes(ShardId{0}, how.size_bytes) * Rational(1, *chunks);
    Emit(*builder, dims, Arrange(dims, choose(dims, *chunks, bytes), bytes), *chunks);
    return std::move(*builder).Finish(algorithm, how.seed);
  };
  return classic::MakeClassic(algorithm, topology, collective, options, make);
}

}  // namespace tutti::baselines

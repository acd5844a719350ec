// torus-dims: the traditional torus algorithm, one dimension after the other.
//
// Model       A shard is cut into one part a dimension; part r works through the dimensions in the
//             order r, r + 1, ... (all rotations in parallel). Within a dimension what a rank has
//             goes round its ring: on rings half one way and half the other, on the lines of a mesh
//             all of it both ways to the ends. Dimensions of length 1 do not count, those of length
//             2 are one exchange.
// Complexity  O(N^2) deliveries, O(dimensions) each.
// Reference   [direct-connect] 6.2: steps are the sum of (d_i - 1), and the bandwidth is optimal
//             only where all dimensions are equal.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "classic/common.h"
#include "classic/grid_axis.h"
#include "registry.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace classic {
namespace {

constexpr std::string_view kTorusDimsName = "torus-dims";

std::vector<GridAxis> LongDimensions(const GridShape& grid) {
  std::vector<GridAxis> dims;
  int32_t stride = 1;
  for (auto length = grid.dims.rbegin(); length != grid.dims.rend(); ++length) {
    if (*length > 1) dims.push_back({*length, stride});
    stride *= *length;
  }
  std::reverse(dims.begin(), dims.end());
  return dims;
}

// One dimension's phase: takes the part of a shard from `ranks` along `dim`, up or down.
class Phase {
 public:
  Phase(ForwardBuilder& builder, const GridAxis& dim, bool wraps)
      : builder_(builder), dim_(dim), wraps_(wraps) {}

  void Run(ShardId shard, Part part, const std::vector<int32_t>& ranks, int32_t start) {
    if (!wraps_ || dim_.length == 2) {
      for (int32_t rank : ranks)
        Walk(shard, part, rank, +1, start), Walk(shard, part, rank, -1, start);
      return;
    }
    const int32_t middle = part.begin + (part.end - part.begin) / 2;
    for (int32_t rank : ranks) {
      Walk(shard, {part.begin, middle}, rank, +1, start);
      Walk(shard, {middle, part.end}, rank, -1, start);
    }
  }

 private:
  void Walk(ShardId shard, Part part, int32_t rank, int32_t way, int32_t start) {
    const bool round = wraps_ && dim_.length > 2;
    for (int32_t hop = 1; hop < dim_.length; ++hop) {
      const int32_t at = dim_.CoordinateOf(rank);
      int32_t next = at + way;
      if (!round && (next < 0 || next >= dim_.length)) return;
      next = (next + dim_.length) % dim_.length;
      const int32_t to = rank + (next - at) * dim_.stride;
      start = builder_.Send(NodeId{rank}, NodeId{to}, shard, part, start);
      rank = to;
    }
  }

  ForwardBuilder& builder_;
  const GridAxis& dim_;
  bool wraps_;
};

void DimensionByDimension(ForwardBuilder& builder, const std::vector<GridAxis>& dims, bool wraps) {
  const auto rotations = static_cast<int32_t>(dims.size());
  const int32_t width = builder.units_per_shard() / rotations;
  for (int32_t rank = 0; rank < builder.topology().num_ranks(); ++rank) {
    if (CancelRequested()) return;
    for (int32_t rotation = 0; rotation < rotations; ++rotation) {
      const Part part{rotation * width, (rotation + 1) * width};
      std::vector<int32_t> ranks{rank};
      int32_t start = 0;
      for (int32_t phase = 0; phase < rotations; ++phase) {
        const GridAxis& dim = dims[static_cast<size_t>((rotation + phase) % rotations)];
        Phase(builder, dim, wraps).Run(ShardId{rank}, part, ranks, start);
        ranks = dim.Extend(ranks);
        start += dim.length - 1;
      }
    }
  }
}

Result<Schedule> MakeTorusDimsForward(const Topology& topology, const Collective& forward,
                                      const SynthOptions& options) {
  if (forward.kind() != CollectiveKind::kAllGather)
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("'{}' makes all-reduce over N shards, not over one", kTorusDimsName));
  const GridShape& grid = *topology.grid();
  const std::vector<GridAxis> dims = LongDimensions(grid);
  const auto rotations = static_cast<int32_t>(dims.size());
  const bool rings = grid.wraps && std::any_of(dims.begin(), dims.end(),
                                               [](const GridAxis& dim) { return dim.length > 2; });
  const int32_t parts = rotations * (rings ? 2 : 1);
  return ChunksOf(options, parts, parts, kTorusDimsName,
                  fmt::format("{} rotations{}", rotations, rings ? " and 2 directions" : ""))
      .and_then([&](int32_t chunks) { return ForwardBuilder::Make(topology, forward, chunks); })
      .map([&](ForwardBuilder builder) {
        DimensionByDimension(builder, dims, grid.wraps);
        return std::move(builder).Finish(kTorusDimsName, options.seed);
      });
}

Result<Schedule> SynthesizeTorusDims(const Topology& topology, const Collective& collective,
                                     const SynthOptions& options) {
  if (!topology.grid())
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' needs a grid: torus(a,b,...), mesh(a,b,...) or a file with "
                                 "one; '{}' has none",
                                 kTorusDimsName, topology.name()));
  return MakeClassic(kTorusDimsName, topology, collective, options, MakeTorusDimsForward);
}

}  // namespace
}  // namespace classic

Synthesizer TorusDimsSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = classic::kTorusDimsName,
          .description = "the traditional torus algorithm: one dimension after the other",
          .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce},
          .synthesize = classic::SynthesizeTorusDims};
}

}  // namespace tutti

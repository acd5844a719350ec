// The dimensions of a network, and collectives that take one dimension after another.
//
// Model       Ranks are row-major over the dimensions, the first slowest. Dimensions are known of
//             torus and mesh (GridShape), and of networks whose name is an expression of rfs,
//             switch2d, hamming or hypercube, with its switches or unwound. A dimension of length 1
//             does not count. In one dimension a rank gives what it holds of a chunk to the ranks
//             of its line: on a ring half of it each way round, on the line of a mesh all of it
//             both ways to the ends, on anything else to the nearest first, over shortest paths. A
//             chunk goes through its dimensions one after another; a dimension carries one chunk at
//             a time, so that chunks in different dimensions overlap.
// Invariants  D1  All-gather goes through the dimensions in the reverse of the order that is given:
//                 the order is the reduce-scatter's, in which the first dimension carries most.
// Complexity  O(N^2 * chunks) deliveries.
// Reference   [tacos] section V.A (BlueConnect, Themis) and VI.3.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "classic/common.h"
#include "classic/grid_axis.h"
#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti::baselines {

enum class DimensionKind : uint8_t { kRing, kLine, kOther };

struct Dimension : classic::GridAxis {
  DimensionKind kind = DimensionKind::kOther;
  int32_t diameter = 1;   // steps that a collective within the dimension takes
  int64_t bandwidth = 0;  // of the links of the dimension into a rank, the least of all ranks
  int64_t alpha_ps = 0;   // the largest of its links
};

// kInfeasible, saying which networks have dimensions, where none are known.
Result<std::vector<Dimension>> DimensionsOf(const Topology& topology, std::string_view algorithm);

// Picoseconds that a piece of `shard_bytes` of every shard keeps `dim` busy when each rank already
// holds that of `held` shards: steps * alpha + bytes into a rank. At most INT64_MAX / 4.
int64_t BusyPs(const Dimension& dim, int64_t held, const Rational& shard_bytes);

// For every chunk the dimensions in the order of its reduce-scatter.
using Orders = std::vector<std::vector<int32_t>>;
using ChooseOrders = std::function<Orders(const std::vector<Dimension>& dims, int32_t chunks,
                                          const Rational& shard_bytes)>;

// Chunks of one shard that all algorithms by dimensions take by default.
inline constexpr int32_t kDefaultChunks = 4;

// All-gather, reduce-scatter or all-reduce of options.chunks chunks in the orders that `choose`
// gives. units_per_shard is the number of chunks, twice that where some dimension is a ring.
Result<Schedule> MakeByDimensions(std::string_view algorithm, const Topology& topology,
                                  const Collective& collective, const SynthOptions& options,
                                  const ChooseOrders& choose);

}  // namespace tutti::baselines

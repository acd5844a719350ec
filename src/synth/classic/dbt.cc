// dbt: double binary tree. Two binary trees over the ranks but the root, each carrying one half,
// pipelined in chunks; a rank that is inner in one tree is a leaf in the other, so that all links
// in and out of ranks are busy.
//
// Model       Ranks after the root in rank order have labels 1 .. n. The first tree is the in-order
//             tree, in which even labels are inner and odd ones leaves; the second is the same tree
//             with the labels mirrored (n even) or shifted by one (n odd), so that odd labels are
//             inner. The root feeds both. All-reduce is reduce followed by broadcast of one shard.
// Complexity  O(chunks * N * distance * in-degree).
// Reference   Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction
//             and scan" (2009).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "classic/common.h"
#include "classic/double_tree.h"
#include "registry.h"

namespace tutti {
namespace classic {
namespace {

constexpr std::string_view kDbtName = "dbt";

// Sends chunk after chunk down both trees, a step apart; returns the steps of one chunk.
int32_t SendDown(ForwardBuilder& builder, NodeId root) {
  const std::array<std::vector<TreeEdge>, 2> trees =
      DoubleTree(builder.topology().num_ranks(), root);
  const int32_t chunks = builder.units_per_shard() / 2;
  int32_t depth = 0;
  for (int32_t chunk = 0; chunk < chunks; ++chunk) {
    for (int32_t tree = 0; tree < 2; ++tree) {
      const int32_t unit = tree * chunks + chunk;
      const Part part{unit, unit + 1};
      for (const TreeEdge& edge : trees[static_cast<size_t>(tree)]) {
        const int32_t start = std::max(chunk, builder.Ready(edge.parent, ShardId{0}, part));
        const int32_t ready = builder.Send(edge.parent, edge.child, ShardId{0}, part, start);
        depth = std::max(depth, ready - chunk);
      }
    }
  }
  return depth;
}

// What one chunk a half needs decides how many chunks pay.
Result<int32_t> DefaultChunks(const Topology& topology, const Collective& forward,
                              const SynthOptions& options) {
  return ForwardBuilder::Make(topology, forward, 2).map([&](ForwardBuilder trial) {
    const int32_t depth = SendDown(trial, forward.root());
    return 2 * PipelineChunks(topology, options.size_bytes / 2, depth, options.element_bytes);
  });
}

Result<Schedule> MakeDbtForward(const Topology& topology, const Collective& forward,
                                const SynthOptions& options) {
  if (forward.kind() != CollectiveKind::kBroadcast)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("'{}' makes all-reduce over one shard, not over N", kDbtName));
  const Result<int32_t> fallback =
      options.chunks == 0 ? DefaultChunks(topology, forward, options) : Result<int32_t>(2);
  if (!fallback) return tl::unexpected(fallback.error());
  return ChunksOf(options, *fallback, 2, kDbtName, "2 trees")
      .and_then([&](int32_t chunks) { return ForwardBuilder::Make(topology, forward, chunks); })
      .map([&](ForwardBuilder builder) {
        SendDown(builder, forward.root());
        return std::move(builder).Finish(kDbtName, options.seed);
      });
}

Result<Schedule> SynthesizeDbt(const Topology& topology, const Collective& collective,
                               const SynthOptions& options) {
  return MakeClassic(kDbtName, topology, collective, options, MakeDbtForward);
}

}  // namespace
}  // namespace classic

Synthesizer DbtSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = classic::kDbtName,
          .description = "double binary tree: two pipelined trees, half of the data each",
          .collectives = {Kind::kAllReduce, Kind::kBroadcast, Kind::kReduce},
          .synthesize = classic::SynthesizeDbt,
          .one_shard_all_reduce = true,
          .chunk_choice = true,
          .groups = GroupUse::kThroughOthers};
}

}  // namespace tutti

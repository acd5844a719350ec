// direct: every rank sends straight to every destination, over shortest paths, all at once.
//
// Model       Each block moves one hop a step from step 0 on. What goes to everyone (all-gather,
//             broadcast) reaches nodes in order of distance, so that its ways form a shortest-path
//             tree; the load of the links decides between equal ways.
// Complexity  all-gather O(N * links), all-to-all O(N^2 * diameter * in-degree).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "classic/common.h"
#include "registry.h"

namespace tutti {
namespace classic {
namespace {

constexpr std::string_view kName = "direct";

// Ranks other than `from`, nearest first, ties by how far they follow it in rank order.
std::vector<NodeId> RanksByDistance(ForwardBuilder& builder, NodeId from) {
  const int32_t num_ranks = builder.topology().num_ranks();
  const std::vector<int32_t>& distance = builder.Distances(from);
  std::vector<NodeId> order;
  for (int32_t k = 1; k < num_ranks; ++k) order.push_back(NodeId{(from.value + k) % num_ranks});
  std::stable_sort(order.begin(), order.end(), [&distance](NodeId a, NodeId b) {
    return distance[a.index()] < distance[b.index()];
  });
  return order;
}

void SpreadAll(ForwardBuilder& builder, const Collective& collective) {
  for (ShardId shard : collective.Shards()) {
    const NodeId from = collective.contributors(shard).one;
    for (NodeId to : RanksByDistance(builder, from))
      builder.Send(from, to, shard, builder.Whole(), 0);
  }
}

// Blocks with one destination, those of one rank distance after the other: neighbouring ranks'
// blocks then meet the same loads.
void SendBlocks(ForwardBuilder& builder, const Collective& collective) {
  for (ShardId shard : collective.Shards()) {
    const NodeId from = collective.contributors(shard).one, to = collective.destinations(shard).one;
    if (from != to && collective.weight(shard) > 0)
      builder.Send(from, to, shard, builder.Whole(), 0);
  }
}

Result<Schedule> Synthesize(const Topology& topology, const Collective& collective,
                            const SynthOptions& options) {
  const auto make = [&options](const Topology& network, const Collective& forward) {
    return ChunksOf(options, 1, 1, kName, "")
        .and_then([&](int32_t chunks) { return ForwardBuilder::Make(network, forward, chunks); })
        .map([&](ForwardBuilder builder) {
          if (forward.destinations(ShardId{0}).all)
            SpreadAll(builder, forward);
          else
            SendBlocks(builder, forward);
          return std::move(builder).Finish(kName, options.seed);
        });
  };
  return MakeClassic(kName, topology, collective, options, make);
}

}  // namespace
}  // namespace classic

Synthesizer DirectSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = classic::kName,
          .description = "every block straight to its destination, over balanced shortest paths",
          .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                          Kind::kBroadcast, Kind::kReduce, Kind::kGather, Kind::kScatter,
                          Kind::kAllToAll, Kind::kAllToAllV},
          .synthesize = classic::Synthesize};
}

}  // namespace tutti

// direct: every rank sends straight to every destination, over shortest paths, all at once.
//
// Model       Each block moves one hop a step from step 0 on. Blocks with one destination take the
//             paths of block_router.h. What goes to everyone (all-gather, broadcast) reaches ranks
//             in order of distance, one hop from where it is already, so that its paths form a tree
//             of shortest paths; the load of the links decides between equal paths.
// Complexity  all-gather O(N^2 (in-degree + log N)), all-to-all as block_router.h says.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "classic/block_router.h"
#include "classic/common.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/graph/distance.h"

namespace tutti {
namespace classic {
namespace {

constexpr std::string_view kDirectName = "direct";

// Small networks: as many chunks as a rank has ports, so that links can be loaded evenly where a
// block has several paths. Large networks have blocks enough, and one chunk keeps schedules small.
constexpr int32_t kMaxDefaultChunks = 8;
constexpr int64_t kDefaultDeliveries = int64_t{1} << 15;

// Links that a shortest path from the source of `hops` may come in by.
int32_t WaysInto(const Topology& topology, NodeId node, const std::vector<int32_t>& hops) {
  int32_t ways = 0;
  for (LinkId link : topology.InLinks(node))
    ways += hops[topology.tail(link).index()] + 1 == hops[node.index()];
  return ways;
}

bool HasChoice(const Topology& topology) {
  for (NodeId from : topology.Ranks()) {
    const std::vector<int32_t> hops = DistancesFrom(topology.graph(), from);
    for (NodeId node : topology.Nodes())
      if (WaysInto(topology, node, hops) > 1) return true;
  }
  return false;
}

int32_t DefaultChunks(const Topology& topology, const Collective& collective) {
  const bool everyone = collective.destinations(ShardId{0}).several();
  const int64_t deliveries =
      int64_t{collective.num_shards()} * (everyone ? collective.largest_group() : 1);
  int64_t chunks = std::min<int64_t>(kMaxDefaultChunks, kDefaultDeliveries / deliveries);
  for (NodeId rank : topology.Ranks())
    chunks = std::min<int64_t>(chunks, topology.OutLinks(rank).size());
  return chunks > 1 && HasChoice(topology) ? static_cast<int32_t>(chunks) : 1;
}

// One shard's way into one rank.
struct Want {
  ShardId shard;
  NodeId to;
  int32_t distance, ways;
};

// Distance after distance, so that each hop starts where the shard is already; those with the
// fewest paths first, so that the others can fill what these leave.
void SpreadAll(ForwardBuilder& builder, const Collective& collective) {
  const Topology& topology = builder.topology();
  std::vector<Want> wants;
  for (ShardId shard : collective.Shards()) {
    const NodeId from = collective.contributors(shard).one;
    const std::vector<int32_t>& hops = builder.Distances(from);
    collective.destinations(shard).ForEach(topology.num_ranks(), [&](NodeId to) {
      if (to != from) wants.push_back({shard, to, hops[to.index()], WaysInto(topology, to, hops)});
    });
  }
  std::stable_sort(wants.begin(), wants.end(), [](const Want& a, const Want& b) {
    return std::pair(a.distance, a.ways) < std::pair(b.distance, b.ways);
  });
  for (const Want& want : wants) {
    if (CancelRequested()) return;
    builder.Send(collective.contributors(want.shard).one, want.to, want.shard, builder.Whole(), 0);
  }
}

Result<Schedule> MakeDirectForward(const Topology& topology, const Collective& forward,
                                   const SynthOptions& options) {
  const Result<int32_t> chunks =
      ChunksOf(options, DefaultChunks(topology, forward), 1, kDirectName, "");
  if (!chunks) return tl::unexpected(chunks.error());
  if (!forward.destinations(ShardId{0}).several())
    return BlockRouter::Make(topology, forward, *chunks).map([&](BlockRouter router) {
      return FinishSchedule(topology, forward, *chunks, std::move(router).Route(), kDirectName,
                            options.seed);
    });
  return ForwardBuilder::Make(topology, forward, *chunks).map([&](ForwardBuilder builder) {
    SpreadAll(builder, forward);
    return std::move(builder).Finish(kDirectName, options.seed);
  });
}

Result<Schedule> SynthesizeDirect(const Topology& topology, const Collective& collective,
                                  const SynthOptions& options) {
  return MakeClassic(kDirectName, topology, collective, options, MakeDirectForward);
}

}  // namespace
}  // namespace classic

Synthesizer DirectSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = classic::kDirectName,
          .description = "every block straight to its destination, over balanced shortest paths",
          .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                          Kind::kBroadcast, Kind::kReduce, Kind::kGather, Kind::kScatter,
                          Kind::kAllToAll, Kind::kAllToAllV},
          .synthesize = classic::SynthesizeDirect,
          .chunk_choice = true,
          .groups = GroupUse::kTogether};
}

}  // namespace tutti

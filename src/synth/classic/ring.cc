// ring and uniring: every shard goes round a ring of all ranks.
//
// Model       Over Hamiltonian rings of the network where some are found: `uniring` takes one,
//             `ring` all that share no link, each carrying an equal part of every shard (a ring and
//             its reverse carry a half each). Where none is found, neighbours in a fixed order are
//             reached over shortest paths, in both directions if every link has a twin. All-gather:
//             N - 1 steps, every rank passes on what came last. Broadcast (and its reverse,
//             reduce): the root's chunks follow each other down the ring.
// Complexity  O(N^2) transfers a ring for all-gather, O(chunks * N) for broadcast.
// Reference   [direct-connect] F.1 for the traditional ring schedule.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "classic/common.h"
#include "classic/rings.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/synth/given_rings.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace classic {
namespace {

constexpr std::string_view kRing = "ring", kUniring = "uniring";

// Rings beyond this many, or beyond this many deliveries, are not looked for.
constexpr int32_t kMaxRings = 16;
constexpr int64_t kMostDeliveries = int64_t{1} << 24;

std::vector<Ring> RingsFor(std::string_view name, const Topology& topology, uint64_t seed) {
  const int64_t pairs = int64_t{topology.num_ranks()} * topology.num_ranks();
  const int32_t fitting =
      static_cast<int32_t>(std::clamp<int64_t>(kMostDeliveries / pairs, 2, kMaxRings));
  const int32_t most = name == kUniring ? 1 : fitting;
  std::vector<Ring> rings = FindRings(topology, most, seed);
  if (!rings.empty()) return rings;
  rings.push_back({FallbackOrder(topology), {}});
  if (most > 1 && ReverseLinks(topology))
    rings.push_back({{rings[0].order.rbegin(), rings[0].order.rend()}, {}});
  return rings;
}

// Sends to the neighbour after position `at`; returns when it is ready there.
int32_t SendOn(ForwardBuilder& builder, const Ring& ring, size_t at, ShardId shard, Part part,
               int32_t start) {
  if (!ring.links.empty()) return builder.SendOver(ring.links[at], shard, part, start);
  return builder.Send(ring.order[at], ring.order[(at + 1) % ring.order.size()], shard, part, start);
}

void GatherRound(ForwardBuilder& builder, const Ring& ring, Part part) {
  const size_t n = ring.order.size();
  std::vector<int32_t> start(n, 0);
  for (size_t hop = 0; hop + 1 < n && !CancelRequested(); ++hop)
    for (size_t i = 0; i < n; ++i)
      start[i] = SendOn(builder, ring, (i + hop) % n, ShardId{ring.order[i].value}, part, start[i]);
}

// Returns the steps of one chunk.
int32_t BroadcastRound(ForwardBuilder& builder, const Ring& ring, Part part, NodeId root) {
  const size_t n = ring.order.size();
  const auto from = static_cast<size_t>(std::find(ring.order.begin(), ring.order.end(), root) -
                                        ring.order.begin());
  int32_t depth = 0;
  for (int32_t unit = part.begin; unit < part.end; ++unit) {
    const int32_t entry = unit - part.begin;
    int32_t start = entry;
    for (size_t hop = 0; hop + 1 < n; ++hop)
      start = std::max(
          start, SendOn(builder, ring, (from + hop) % n, ShardId{0}, {unit, unit + 1}, start));
    depth = std::max(depth, start - entry);
  }
  return depth;
}

int32_t SendRound(ForwardBuilder& builder, const std::vector<Ring>& rings,
                  const Collective& forward) {
  const auto count = static_cast<int32_t>(rings.size());
  const int32_t width = builder.units_per_shard() / count;
  int32_t depth = 0;
  for (int32_t k = 0; k < count; ++k) {
    const Ring& ring = rings[static_cast<size_t>(k)];
    const Part part{k * width, (k + 1) * width};
    if (forward.kind() == CollectiveKind::kAllGather)
      GatherRound(builder, ring, part);
    else
      depth = std::max(depth, BroadcastRound(builder, ring, part, forward.root()));
  }
  return depth;
}

Result<int32_t> DefaultChunks(const Topology& topology, const std::vector<Ring>& rings,
                              const Collective& forward, const SynthOptions& options) {
  const auto count = static_cast<int32_t>(rings.size());
  if (forward.kind() == CollectiveKind::kAllGather) return count;
  return ForwardBuilder::Make(topology, forward, count).map([&](ForwardBuilder trial) {
    const int32_t depth = SendRound(trial, rings, forward);
    return count *
           PipelineChunks(topology, options.size_bytes / count, depth, options.element_bytes);
  });
}

Result<Schedule> MakeRingForward(std::string_view name, const Topology& topology,
                                 const std::vector<Ring>& rings, const Collective& forward,
                                 const SynthOptions& options) {
  const auto count = static_cast<int32_t>(rings.size());
  const Result<int32_t> fallback = DefaultChunks(topology, rings, forward, options);
  if (!fallback) return tl::unexpected(fallback.error());
  return ChunksOf(options, *fallback, count, name, fmt::format("{} rings", count))
      .and_then([&](int32_t chunks) { return ForwardBuilder::Make(topology, forward, chunks); })
      .map([&](ForwardBuilder builder) {
        SendRound(builder, rings, forward);
        return std::move(builder).Finish(name, options.seed);
      });
}

Result<Schedule> Synthesize(std::string_view name, const Topology& topology,
                            const Collective& collective, const SynthOptions& options) {
  const auto make = [name](const Topology& network, const Collective& forward,
                           const SynthOptions& how) {
    return MakeRingForward(name, network, RingsFor(name, network, how.seed), forward, how);
  };
  return MakeClassic(name, topology, collective, options, make);
}

// The links of a ring of these ranks; `used` ones are other rings'. Nothing: there are not enough.
std::optional<Ring> TakeLinks(const Topology& network, std::span<const NodeId> order,
                              std::vector<bool>& used) {
  Ring ring;
  for (size_t i = 0; i < order.size(); ++i) {
    const NodeId to = order[(i + 1) % order.size()];
    std::optional<LinkId> free;
    for (const LinkId link : network.OutLinks(order[i]))
      if (!free && network.head(link) == to && !used[link.index()]) free = link;
    if (!free) return std::nullopt;
    used[free->index()] = true;
    ring.order.push_back(order[i]);
    ring.links.push_back(*free);
  }
  return ring;
}

// Empty: the network lacks links of some.
std::vector<Ring> TakeRings(const Topology& network, std::span<const std::vector<NodeId>> orders) {
  std::vector<Ring> rings;
  std::vector<bool> used(static_cast<size_t>(network.num_links()), false);
  for (const std::vector<NodeId>& order : orders) {
    std::optional<Ring> ring = TakeLinks(network, order, used);
    if (!ring) return {};
    rings.push_back(std::move(*ring));
  }
  return rings;
}

Status CheckOrder(const Topology& topology, std::span<const NodeId> order, size_t number) {
  std::vector<NodeId> sorted(order.begin(), order.end()), ranks;
  std::sort(sorted.begin(), sorted.end());
  for (const NodeId rank : topology.Ranks()) ranks.push_back(rank);
  if (sorted != ranks)
    return InvalidArgument(
        fmt::format("ring {}: wanted each of the {} ranks once", number, topology.num_ranks()));
  return {};
}

// FindRings finds one for certain, which is told without a search.
bool HasPlainRing(const Topology& topology) {
  if (topology.grid() && !GridCycle(*topology.grid()).empty()) return true;
  for (NodeId rank : topology.Ranks()) {
    bool found = false;
    for (LinkId link : topology.OutLinks(rank))
      found = found || topology.head(link).value == (rank.value + 1) % topology.num_ranks();
    if (!found) return false;
  }
  return true;
}

// Round a ring of links the last rank gets what the first has after all others; what is reduced and
// spread again has come round before.
Forecast ForecastOf(const Topology& topology, const Collective& collective,
                    const SynthOptions& options) {
  Forecast forecast = ForecastByDeliveries(collective, options, kUsualNsADelivery);
  if (!HasPlainRing(topology)) return forecast;
  const int32_t once = collective.num_ranks() - 1;
  forecast.min_steps = collective.kind() == CollectiveKind::kAllReduce ? 2 * once : once;
  return forecast;
}

std::vector<CollectiveKind> RingCollectives() {
  return {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
          CollectiveKind::kBroadcast, CollectiveKind::kReduce};
}

}  // namespace
}  // namespace classic

Result<Schedule> ScheduleOverRings(const Topology& topology, const Collective& collective,
                                   std::span<const std::vector<NodeId>> rings,
                                   const SynthOptions& options) {
  if (rings.empty()) return InvalidArgument("no rings");
  std::vector<std::vector<NodeId>> backward;
  for (size_t i = 0; i < rings.size(); ++i) {
    if (Status status = classic::CheckOrder(topology, rings[i], i); !status)
      return tl::unexpected(status.error());
    backward.emplace_back(rings[i].rbegin(), rings[i].rend());
  }
  // What reduces is made on the transpose, where rings run the other way.
  const auto make = [&rings, &backward](const Topology& network, const Collective& forward,
                                        const SynthOptions& how) -> Result<Schedule> {
    std::vector<classic::Ring> taken = classic::TakeRings(network, rings);
    if (taken.empty()) taken = classic::TakeRings(network, backward);
    if (taken.empty()) return InvalidArgument("the network lacks links of the rings");
    return classic::MakeRingForward(classic::kRing, network, taken, forward, how);
  };
  return classic::MakeClassic(classic::kRing, topology, collective, options, make);
}

Synthesizer RingSynthesizer() {
  return {
      .name = classic::kRing,
      .description = "rings in both directions, over as many link-disjoint rings as are found",
      .collectives = classic::RingCollectives(),
      .synthesize =
          [](const Topology& topology, const Collective& collective, const SynthOptions& options) {
            return classic::Synthesize(classic::kRing, topology, collective, options);
          },
      .chunk_choice = true,
      .forecast = classic::ForecastOf,
      .groups = GroupUse::kThroughOthers};
}

Synthesizer UniringSynthesizer() {
  return {
      .name = classic::kUniring,
      .description = "one ring in one direction",
      .collectives = classic::RingCollectives(),
      .synthesize =
          [](const Topology& topology, const Collective& collective, const SynthOptions& options) {
            return classic::Synthesize(classic::kUniring, topology, collective, options);
          },
      .chunk_choice = true,
      .forecast = classic::ForecastOf,
      .groups = GroupUse::kThroughOthers};
}

}  // namespace tutti

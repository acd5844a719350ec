#include "tutti/synth/stored.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "registry.h"
#include "stored/trees.h"
#include "tutti/base/check.h"
#include "tutti/graph/isomorphism.h"
#include "tutti/sched/transform.h"

namespace tutti {
namespace stored {
namespace {

constexpr std::string_view kName = "stored";

// One delivery of a tree.
struct Hop {
  NodeId from;
  int32_t step;  // from 0
};

int32_t Digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

bool IsRoot(std::string_view tree, NodeId rank) { return tree[2 * rank.index()] == '-'; }

Hop HopInto(std::string_view tree, NodeId rank) {
  return {NodeId{Digit(tree[2 * rank.index()])}, Digit(tree[2 * rank.index() + 1]) - 1};
}

// The links of all trees, each once.
Digraph GraphOf(const StoredTrees& stored) {
  std::vector<Digraph::Arc> arcs;
  for (std::string_view tree : stored.trees)
    for (NodeId rank : IdRange<NodeId>(0, stored.ranks))
      if (!IsRoot(tree, rank)) arcs.emplace_back(HopInto(tree, rank).from, rank);
  std::sort(arcs.begin(), arcs.end());
  arcs.erase(std::unique(arcs.begin(), arcs.end()), arcs.end());
  return Digraph(stored.ranks, arcs);
}

LinkId LinkBetween(const Digraph& graph, NodeId tail, NodeId head) {
  for (LinkId link : graph.OutLinks(tail))
    if (graph.head(link) == head) return link;
  TUTTI_CHECK(false);
}

// The stored schedule on `topology`, whose nodes and links `map` says.
Schedule CarryOver(const StoredTrees& stored, const Digraph& graph, const Isomorphism& map,
                   const Collective& collective) {
  Schedule schedule{.collective = collective};
  schedule.units_per_shard = stored.chunks;
  schedule.num_steps = stored.steps;
  for (size_t i = 0; i < stored.trees.size(); ++i) {
    const auto chunk = static_cast<int32_t>(i % static_cast<size_t>(stored.chunks));
    const size_t root = i / static_cast<size_t>(stored.chunks);
    for (NodeId rank : graph.Nodes()) {
      if (IsRoot(stored.trees[i], rank)) continue;
      const Hop hop = HopInto(stored.trees[i], rank);
      schedule.transfers.push_back(
          {.shard = ShardId{map.node_map[root].value},
           .link = map.link_map[LinkBetween(graph, hop.from, rank).index()],
           .begin = chunk,
           .end = chunk + 1,
           .step = hop.step});
    }
  }
  std::sort(schedule.transfers.begin(), schedule.transfers.end(),
            [](const Transfer& a, const Transfer& b) {
              return std::tuple(a.step, a.link, a.shard, a.begin) <
                     std::tuple(b.step, b.link, b.shard, b.begin);
            });
  return schedule;
}

Result<Schedule> NotStored(const Topology& topology, const std::string& why) {
  std::string names;
  for (const StoredTrees& stored : AllStoredTrees())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", stored.graph);
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format("'{}' has no schedule for {}: {}; there are schedules for {}, in any "
                  "numbering, with equal links",
                  kName, topology.name().empty() ? "this network" : topology.name(), why, names));
}

Result<Schedule> Synthesize(const Topology& topology, const Collective& collective,
                            const SynthOptions& options) {
  Result<Schedule> schedule = DeriveFromForward(
      topology, collective, [&](const Topology& network, const Collective& forward) {
        return MakeStored(network, forward, options);
      });
  if (!schedule) return schedule;
  schedule->algorithm = kName;
  schedule->seed = options.seed;
  return schedule;
}

}  // namespace
}  // namespace stored

Result<Schedule> MakeStored(const Topology& topology, const Collective& collective,
                            const SynthOptions& options) {
  using namespace stored;
  if (collective.kind() != CollectiveKind::kAllGather)
    return InvalidArgument(
        fmt::format("stored schedules are of all-gather, not of {}", Name(collective.kind())));
  if (topology.has_switches()) return NotStored(topology, "it has switches");
  if (!topology.is_homogeneous()) return NotStored(topology, "its links are not all alike");
  for (NodeId rank : topology.Ranks())
    if (!topology.self_loops(rank).empty()) return NotStored(topology, "it has self-loops");
  for (const StoredTrees& one : AllStoredTrees()) {
    if (one.ranks != topology.num_ranks()) continue;
    const Digraph graph = GraphOf(one);
    const IsomorphismSearch search = FindIsomorphism(graph, topology.graph());
    if (search.outcome != IsomorphismSearch::Outcome::kFound) continue;
    if (options.chunks < 0 || options.chunks % one.chunks != 0)
      return InvalidArgument(
          fmt::format("the stored schedule of {} has {} chunks per shard: chunks "
                      "must be a multiple of that, got {}",
                      one.graph, one.chunks, options.chunks));
    Schedule schedule = CarryOver(one, graph, search.isomorphism, collective);
    schedule.topology_fingerprint = topology.Fingerprint();
    schedule.algorithm = kName;
    schedule.seed = options.seed;
    if (options.chunks == 0) return schedule;
    return Refine(schedule, options.chunks / one.chunks);
  }
  return NotStored(topology, "it is none of the graphs known");
}

Synthesizer StoredSynthesizer() {
  using Kind = CollectiveKind;
  return {
      .name = stored::kName,
      .description = "bandwidth-optimal schedules found by search, for diamond and debruijn_mod",
      .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce},
      .synthesize = stored::Synthesize};
}

}  // namespace tutti

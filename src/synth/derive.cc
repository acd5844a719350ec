#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tutti/sched/transform.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti {
namespace {

// Links looked at in the search for an isomorphism to the transpose: a fraction of a second.
// Without one the reverse is made on the transpose, which costs a second synthesis and nothing
// else.
constexpr int64_t kMirrorBudget = 20'000'000;

// How a network is turned around in place: what link l carried is, reversed in time, carried by
// link_map[l], and node v plays the part of node_map[v].
struct Mirror {
  std::vector<NodeId> node_map;
  std::vector<LinkId> link_map;
};

std::vector<LinkId> AllLinks(const Topology& topology) {
  std::vector<LinkId> links;
  for (LinkId link : topology.Links()) links.push_back(link);
  return links;
}

// `in_place`: nodes keep their parts.
std::optional<Mirror> FindMirror(const Topology& topology, bool in_place) {
  Mirror mirror;
  if (std::optional<std::vector<LinkId>> partner = ReverseLinks(topology)) {
    for (NodeId node : topology.Nodes()) mirror.node_map.push_back(node);
    mirror.link_map = *std::move(partner);
    return mirror;
  }
  if (in_place) return std::nullopt;
  IsomorphismSearch search = FindReverseSymmetry(topology, kMirrorBudget);
  if (search.outcome != IsomorphismSearch::Outcome::kFound) return std::nullopt;
  std::vector<LinkId> came_from;
  TransposeTopology(topology, &came_from);
  mirror.node_map = std::move(search.isomorphism.node_map);
  mirror.link_map.resize(came_from.size());
  for (size_t turned = 0; turned < came_from.size(); ++turned)
    mirror.link_map[came_from[turned].index()] = search.isomorphism.link_map[turned];
  return mirror;
}

// The collective whose schedule, mirrored, is one of `collective`: its reverse, and the root is the
// rank that becomes the root.
Result<Collective> ForwardOf(const Collective& collective, const Mirror& mirror) {
  const Collective reversed = collective.Reversed();
  if (!reversed.has_root() || reversed.has_groups()) return reversed;
  const auto root = std::find(mirror.node_map.begin(), mirror.node_map.end(), collective.root());
  Collective::Options options;
  options.root = static_cast<int32_t>(root - mirror.node_map.begin());
  return Collective::Make(reversed.kind(), reversed.num_ranks(), std::move(options));
}

bool IsTimed(const Schedule& schedule) { return schedule.kind == ScheduleKind::kTimed; }

// [A^T] of a schedule of `topology`.
Schedule Turn(const Topology& topology, const Schedule& schedule,
              const std::vector<LinkId>& link_map, uint64_t fingerprint) {
  return IsTimed(schedule) ? ReverseTimed(topology, schedule, link_map, fingerprint)
                           : Reverse(schedule, link_map, fingerprint);
}

// [f(A^T)], theorem 2.
Result<Schedule> Apply(const Mirror& mirror, const Schedule& schedule, const Topology& topology) {
  return Rename(Turn(topology, schedule, mirror.link_map, schedule.topology_fingerprint),
                mirror.node_map, AllLinks(topology), schedule.topology_fingerprint);
}

// A schedule of `collective`, which is the reverse of one that `make` can make. Where the network
// has a mirror, `forward` receives the schedule that was mirrored.
Result<Schedule> MakeReversed(const Topology& topology, const Collective& collective,
                              const MakeForward& make, std::optional<Schedule>* forward) {
  if (const std::optional<Mirror> mirror = FindMirror(topology, collective.has_groups())) {
    const Result<Collective> mirrored = ForwardOf(collective, *mirror);
    if (!mirrored) return tl::unexpected(mirrored.error());
    Result<Schedule> made = make(topology, *mirrored);
    if (!made) return made;
    Result<Schedule> reversed = Apply(*mirror, *made, topology);
    if (forward != nullptr) *forward = *std::move(made);
    return reversed;
  }
  std::vector<LinkId> link_map;
  const Topology transpose = TransposeTopology(topology, &link_map);
  const Result<Schedule> made = make(transpose, collective.Reversed());
  if (!made) return made;
  return Turn(transpose, *made, link_map, topology.Fingerprint());
}

Result<Schedule> MakeAllReduce(const Topology& topology, const Collective& collective,
                               const MakeForward& make) {
  const bool one_shard = collective.one_shard_each();
  const auto kind = one_shard ? CollectiveKind::kReduce : CollectiveKind::kReduceScatter;
  Collective::Options groups = collective.GroupOptions();
  groups.all_reduce_shards = 0;
  const Result<Collective> first_half =
      Collective::Make(kind, collective.num_ranks(), std::move(groups));
  if (!first_half) return tl::unexpected(first_half.error());
  const Collective second_half = first_half->Reversed();
  std::optional<Schedule> made;
  const Result<Schedule> reduced = MakeReversed(topology, *first_half, make, &made);
  if (!reduced) return reduced;
  if (!made || !(made->collective == second_half)) {
    Result<Schedule> spread = make(topology, second_half);
    if (!spread) return spread;
    made = *std::move(spread);
  }
  if (IsTimed(*reduced)) return ConcatenateTimed(topology, *reduced, *made, collective);
  // Chunks of one shard travel as a pipeline, which reversed ends with the first chunk: flipped,
  // the first chunk comes first again and is spread while the next ones are still being reduced.
  if (one_shard) return Overlap(topology, FlipShards(*reduced), *made, collective);
  return Concatenate(*reduced, *made, collective);
}

}  // namespace

Result<Schedule> DeriveFromForward(const Topology& topology, const Collective& collective,
                                   const MakeForward& make) {
  const bool spreads = collective.destinations(ShardId{0}).several();
  if (!spreads && !collective.reduces())
    return InvalidArgument(
        fmt::format("{} is not derived from all-gather or broadcast", Name(collective.kind())));
  if (!spreads) return MakeReversed(topology, collective, make, nullptr);
  return collective.reduces() ? MakeAllReduce(topology, collective, make)
                              : make(topology, collective);
}

}  // namespace tutti

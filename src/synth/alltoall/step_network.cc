#include "alltoall/step_network.h"

#include <algorithm>
#include <utility>

#include "tutti/base/check.h"
#include "tutti/flow/automorphisms.h"
#include "tutti/graph/distance.h"
#include "tutti/sched/transform.h"
#include "tutti/topo/translations.h"

namespace tutti::tsmcf {
namespace {

// Links that the search for symmetries may look at: a tenth of a second.
constexpr int64_t kSymmetryBudget = 20'000'000;

// Numbers that all maps together may hold.
constexpr int64_t kMaxNumbers = 50'000'000;

std::vector<NodeAndLinkMap> FromTranslations(const Topology& topology,
                                             const Translations& translations) {
  std::vector<NodeAndLinkMap> symmetries(static_cast<size_t>(topology.num_ranks()));
  for (NodeId node : topology.Ranks()) {
    const NodePermutation images = translations.ImagesOf(node);
    for (NodeId to : topology.Ranks()) symmetries[to.index()].node.push_back(images[to.index()]);
  }
  return symmetries;
}

// One that takes any rank to any other where there is one, else what the search for orbits gives.
std::vector<NodeAndLinkMap> NodeMaps(const Topology& topology, bool alike) {
  const int64_t numbers =
      int64_t{topology.num_ranks()} * (int64_t{topology.num_nodes()} + topology.num_links());
  if (alike && !topology.has_switches() && numbers <= kMaxNumbers)
    if (const Result<Translations> translations = FindTranslations(topology))
      return FromTranslations(topology, *translations);
  const FlowNetwork network(topology);
  std::vector<NodeAndLinkMap> symmetries;
  const NetworkGroup group =
      alike ? FindFreeGroup(topology, network, {}, kSymmetryBudget) : IdentityGroup(network);
  for (const NetworkMap& found : group.elements) {
    NodeAndLinkMap& map = symmetries.emplace_back();
    for (int32_t node : found.node) map.node.push_back(NodeId{node});
  }
  return symmetries;
}

std::vector<NodeAndLinkMap> FindSymmetries(const Topology& topology, bool alike) {
  std::vector<NodeAndLinkMap> symmetries = NodeMaps(topology, alike);
  for (NodeAndLinkMap& map : symmetries) {
    Result<std::vector<LinkId>> links = LinkMapOf(topology, topology, map.node);
    TUTTI_CHECK(links.has_value());  // a checked automorphism
    map.link = *std::move(links);
  }
  return symmetries;
}

}  // namespace

StepNetwork::StepNetwork(const Topology& network, bool alike)
    : topology(network),
      symmetries(FindSymmetries(network, alike)),
      of_link(static_cast<size_t>(network.num_links()), {kNoCarrier, kNoCarrier, kNoCarrier}) {
  const auto slowest = static_cast<double>(topology.min_bandwidth());
  const auto order = static_cast<int32_t>(symmetries.size());
  const auto add = [&](int64_t bandwidth, int32_t members) {
    Carrier carrier{.bandwidth = bandwidth, .members = members, .repeats = order / members};
    carrier.unit_time = carrier.repeats * slowest / static_cast<double>(bandwidth);
    carriers.push_back(carrier);
    return static_cast<int32_t>(carriers.size() - 1);
  };
  for (LinkId link : topology.Links()) {
    if (of_link[link.index()][0] != kNoCarrier) continue;
    std::vector<LinkId> orbit;
    for (const NodeAndLinkMap& map : symmetries) orbit.push_back(map.link[link.index()]);
    std::sort(orbit.begin(), orbit.end());
    orbit.erase(std::unique(orbit.begin(), orbit.end()), orbit.end());
    const int32_t carrier = add(topology.bandwidth(link), static_cast<int32_t>(orbit.size()));
    for (LinkId one : orbit) of_link[one.index()][0] = carrier;
  }
  hops_from.resize(static_cast<size_t>(topology.num_ranks()));
  for (NodeId rank : topology.Ranks()) {
    const bool first = std::all_of(symmetries.begin(), symmetries.end(),
                                   [&](const auto& map) { return rank <= map.node[rank.index()]; });
    if (!first) continue;
    sources.push_back(rank);
    hops_from[rank.index()] = DistancesFrom(topology.graph(), rank);
    const auto limit = topology.host_bandwidth(rank);
    if (!limit) continue;
    const int32_t out = add(*limit, order), in = add(*limit, order);
    for (const NodeAndLinkMap& map : symmetries) {
      const NodeId image = map.node[rank.index()];
      for (LinkId link : topology.OutLinks(image)) of_link[link.index()][1] = out;
      for (LinkId link : topology.InLinks(image)) of_link[link.index()][2] = in;
    }
  }
  for (NodeId rank : topology.Ranks()) hops_to.push_back(DistancesTo(topology.graph(), rank));
}

bool Sends(const Collective& collective, ShardId shard) {
  return collective.contributors(shard).one != collective.destinations(shard).one &&
         collective.weight(shard) > 0;
}

int32_t FewestSteps(const StepNetwork& network, const Collective& collective) {
  int32_t fewest = 0;
  for (ShardId shard : collective.Shards())
    if (Sends(collective, shard))
      fewest = std::max(fewest, network.hops_to[collective.destinations(shard).one.index()]
                                               [collective.contributors(shard).one.index()]);
  return fewest;
}

}  // namespace tutti::tsmcf

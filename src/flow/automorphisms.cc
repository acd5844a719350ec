#include "tutti/flow/automorphisms.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "tutti/base/parallel.h"
#include "tutti/topo/symmetry.h"
#include "tutti/topo/translations.h"

namespace tutti {
namespace {

// Numbers that the listed group may hold.
constexpr size_t kLargestGroup = 4'000'000;

int32_t BundleOf(const FlowNetwork& network, int32_t tail, int32_t head) {
  const auto first = network.tail.begin() + network.first_in[static_cast<size_t>(head)];
  const auto end = network.tail.begin() + network.first_in[static_cast<size_t>(head) + 1];
  const auto at = std::lower_bound(first, end, tail);
  TUTTI_CHECK(at != end && *at == tail);
  return static_cast<int32_t>(at - network.tail.begin());
}

NetworkMap MapOf(const FlowNetwork& network, std::vector<int32_t> node) {
  NetworkMap map{std::move(node), {}};
  for (size_t e = 0; e < network.num_bundles(); ++e)
    map.bundle.push_back(BundleOf(network, map.node[static_cast<size_t>(network.tail[e])],
                                  map.node[static_cast<size_t>(network.head[e])]));
  return map;
}

using NodeMap = std::vector<int32_t>;

NodeMap Identity(const FlowNetwork& network) {
  NodeMap identity(static_cast<size_t>(network.num_nodes));
  std::iota(identity.begin(), identity.end(), 0);
  return identity;
}

bool KeepsARank(const FlowNetwork& network, const NodeMap& map) {
  for (int32_t rank = 0; rank < network.num_ranks; ++rank)
    if (map[static_cast<size_t>(rank)] == rank) return true;
  return false;
}

bool Keeps(const FlowNetwork& network, const std::vector<int64_t>& demand, const NodeMap& map) {
  const auto n = static_cast<size_t>(network.num_ranks);
  for (size_t s = 0; s < n; ++s)
    for (size_t d = 0; d < n; ++d)
      if (s != d && demand[static_cast<size_t>(map[s]) * n + static_cast<size_t>(map[d])] !=
                        demand[s * n + d])
        return false;
  return true;
}

// The elements that leave the demands as they are, which are a group again.
void KeepDemands(const FlowNetwork& network, const std::vector<int64_t>& demand,
                 std::vector<NodeMap>& elements) {
  if (demand.empty()) return;
  std::vector<char> keeps(elements.size(), 0);
  ParallelFor(static_cast<int64_t>(elements.size()), 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      keeps[static_cast<size_t>(i)] = Keeps(network, demand, elements[static_cast<size_t>(i)]);
  });
  size_t kept = 0;
  for (size_t i = 0; i < elements.size(); ++i)
    if (keeps[i] != 0) std::swap(elements[kept++], elements[i]);
  elements.resize(kept);
}

// Everything that products of the generators do to the nodes. Nothing when that is too much to
// list, or, with `free`, when an element but the identity keeps a rank in place.
std::vector<NodeMap> ListGroup(const FlowNetwork& network, const std::vector<NodeMap>& generators,
                               bool free) {
  std::vector<NodeMap> elements = {Identity(network)};
  std::set<NodeMap> seen = {elements[0]};
  const size_t size = static_cast<size_t>(network.num_nodes) + network.num_bundles();
  for (size_t i = 0; i < elements.size(); ++i)
    for (const NodeMap& generator : generators) {
      NodeMap next(elements[0].size());
      for (size_t v = 0; v < next.size(); ++v)
        next[v] = generator[static_cast<size_t>(elements[i][v])];
      if (!seen.insert(next).second) continue;
      if (free && KeepsARank(network, next)) return {};
      elements.push_back(std::move(next));
      if (elements.size() * size > kLargestGroup) return {};
    }
  return elements;
}

std::vector<NodeMap> FindGenerators(const Topology& topology, int64_t budget) {
  std::vector<NodeMap> generators;
  for (const Isomorphism& found : FindNodeOrbits(topology, budget).generators) {
    NodeMap map;
    for (NodeId node : found.node_map) map.push_back(node.value);
    generators.push_back(std::move(map));
  }
  return generators;
}

// None where the network has none, or lists of them are too large.
std::vector<NodeMap> ListTranslations(const Topology& topology) {
  const auto ranks = static_cast<size_t>(topology.num_ranks());
  if (topology.has_switches() || ranks * ranks > kLargestGroup) return {};
  const Result<Translations> translations = FindTranslations(topology);
  if (!translations) return {};
  std::vector<NodeMap> elements(ranks);
  for (const NodeId rank : topology.Ranks()) {
    const NodePermutation images = translations->ImagesOf(rank);
    for (size_t u = 0; u < ranks; ++u) elements[u].push_back(images[u].value);
  }
  return elements;
}

NetworkGroup GroupOf(const FlowNetwork& network, std::vector<NodeMap> elements) {
  NetworkGroup group;
  for (NodeMap& node : elements) group.elements.push_back(MapOf(network, std::move(node)));
  group.bundle_orbit.assign(network.num_bundles(), -1);
  for (size_t e = 0; e < network.num_bundles(); ++e) {
    if (group.bundle_orbit[e] >= 0) continue;
    const auto orbit = static_cast<int32_t>(group.orbit_size.size());
    group.orbit_size.push_back(0);
    for (const NetworkMap& map : group.elements) {
      int32_t& of_image = group.bundle_orbit[static_cast<size_t>(map.bundle[e])];
      if (of_image < 0) ++group.orbit_size.back();
      of_image = orbit;
    }
  }
  for (int32_t rank = 0; rank < network.num_ranks; ++rank) {
    int32_t first = rank;
    for (const NetworkMap& map : group.elements)
      first = std::min(first, map.node[static_cast<size_t>(rank)]);
    group.representative.push_back(first);
  }
  return group;
}

}  // namespace

NetworkGroup IdentityGroup(const FlowNetwork& network) {
  return GroupOf(network, {Identity(network)});
}

NetworkGroup FindNetworkGroup(const Topology& topology, const FlowNetwork& network,
                              const std::vector<int64_t>& demand) {
  std::vector<NodeMap> elements =
      ListGroup(network, FindGenerators(topology, kIsomorphismBudget), false);
  KeepDemands(network, demand, elements);
  return elements.empty() ? IdentityGroup(network) : GroupOf(network, std::move(elements));
}

NetworkGroup FindFreeGroup(const Topology& topology, const FlowNetwork& network,
                           const std::vector<int64_t>& demand, int64_t budget) {
  std::vector<NodeMap> chosen, elements = {Identity(network)};
  for (NodeMap& generator : FindGenerators(topology, budget)) {
    chosen.push_back(std::move(generator));
    std::vector<NodeMap> larger = ListGroup(network, chosen, true);
    if (larger.empty()) {
      chosen.pop_back();
    } else {
      elements = std::move(larger);
    }
  }
  KeepDemands(network, demand, elements);
  // Which free group the search finds is chance; that of translations often keeps more demands.
  if (!demand.empty()) {
    std::vector<NodeMap> translations = ListTranslations(topology);
    KeepDemands(network, demand, translations);
    const size_t size = static_cast<size_t>(network.num_nodes) + network.num_bundles();
    if (translations.size() > elements.size() && translations.size() * size <= kLargestGroup)
      elements = std::move(translations);
  }
  return GroupOf(network, std::move(elements));
}

}  // namespace tutti

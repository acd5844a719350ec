#include "tutti/flow/automorphisms.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "tutti/topo/symmetry.h"

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
                              bool demands_differ) {
  if (demands_differ) return IdentityGroup(network);
  std::vector<NodeMap> elements =
      ListGroup(network, FindGenerators(topology, kIsomorphismBudget), false);
  return elements.empty() ? IdentityGroup(network) : GroupOf(network, std::move(elements));
}

NetworkGroup FindFreeGroup(const Topology& topology, const FlowNetwork& network,
                           bool demands_differ, int64_t budget) {
  if (demands_differ) return IdentityGroup(network);
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
  return GroupOf(network, std::move(elements));
}

}  // namespace tutti

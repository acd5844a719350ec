#include "mcf/automorphisms.h"

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

// Everything that products of the generators do to the nodes; only the identity when that is too
// much to list.
std::vector<std::vector<int32_t>> ListGroup(const FlowNetwork& network, const NodeOrbits& orbits) {
  std::vector<int32_t> identity(static_cast<size_t>(network.num_nodes));
  std::iota(identity.begin(), identity.end(), 0);
  std::vector<std::vector<int32_t>> elements = {identity};
  std::set<std::vector<int32_t>> seen = {identity};
  const size_t size = static_cast<size_t>(network.num_nodes) + network.num_bundles();
  for (size_t i = 0; i < elements.size(); ++i)
    for (const Isomorphism& generator : orbits.generators) {
      std::vector<int32_t> next(identity.size());
      for (size_t v = 0; v < next.size(); ++v)
        next[v] = generator.node_map[static_cast<size_t>(elements[i][v])].value;
      if (!seen.insert(next).second) continue;
      elements.push_back(std::move(next));
      if (elements.size() * size > kLargestGroup) return {identity};
    }
  return elements;
}

}  // namespace

NetworkGroup FindNetworkGroup(const Topology& topology, const FlowNetwork& network,
                              bool demands_differ) {
  NetworkGroup group;
  for (auto& node : ListGroup(network, demands_differ ? NodeOrbits() : FindNodeOrbits(topology)))
    group.elements.push_back(MapOf(network, std::move(node)));
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

}  // namespace tutti

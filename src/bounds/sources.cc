#include "sources.h"

#include <algorithm>

#include "tutti/topo/symmetry.h"

namespace tutti {
namespace {

// Links visited by one breadth-first search a rank from which on symmetry is worth looking for.
constexpr int64_t kManyVisits = 20'000'000;

}  // namespace

std::vector<Source> SourcesOf(const Topology& topology, const Collective& collective) {
  if (collective.has_root()) return {{collective.root(), 1}};
  const int64_t visits = int64_t{topology.num_ranks()} * topology.num_links();
  if (visits < kManyVisits || collective.kind() == CollectiveKind::kAllToAllV)
    return EveryRank(topology);
  // A search cut short finds smaller orbits, which are no less true.
  const NodeOrbits orbits = FindNodeOrbits(topology, std::min(visits / 4, kIsomorphismBudget));
  std::vector<int64_t> size(orbits.representatives.size(), 0);
  for (const int32_t orbit : orbits.orbit) ++size[static_cast<size_t>(orbit)];
  std::vector<Source> sources;
  for (NodeId node : orbits.representatives)
    if (topology.is_rank(node))
      sources.push_back({node, size[static_cast<size_t>(orbits.orbit[node.index()])]});
  return sources;
}

std::vector<Source> EveryRank(const Topology& topology) {
  std::vector<Source> sources;
  for (NodeId rank : topology.Ranks()) sources.push_back({rank, 1});
  return sources;
}

}  // namespace tutti

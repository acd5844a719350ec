#include "tutti/topo/symmetry.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tutti/topo/properties.h"

namespace tutti {
namespace {

// Numbers for what must stay the same, one table for both topologies of a search, so that equal
// colours mean equal things exactly.
class Palette {
 public:
  GraphColors ColorsOf(const Topology& topology) {
    GraphColors colors;
    for (NodeId node : topology.Nodes()) {
      std::vector<uint64_t> kind{topology.is_rank(node) ? uint64_t{0} : uint64_t{1}};
      for (const LinkSpec& loop : topology.self_loops(node)) kind.push_back(ColorOf(loop));
      std::sort(kind.begin() + 1, kind.end());
      if (topology.is_rank(node))
        if (const auto limit = topology.host_bandwidth(node))
          kind[0] = 1 + static_cast<uint64_t>(*limit);
      colors.nodes.push_back(nodes_.emplace(std::move(kind), nodes_.size()).first->second);
    }
    for (LinkId link : topology.Links()) colors.links.push_back(ColorOf(topology.spec(link)));
    return colors;
  }

 private:
  uint64_t ColorOf(const LinkSpec& spec) {
    return links_.emplace(std::pair(spec.bandwidth, spec.alpha_ps), links_.size()).first->second;
  }

  std::map<std::pair<int64_t, int64_t>, uint64_t> links_;
  std::map<std::vector<uint64_t>, uint64_t> nodes_;
};

}  // namespace

IsomorphismSearch FindIsomorphism(const Topology& from, const Topology& to, int64_t budget) {
  Palette palette;
  const GraphColors from_colors = palette.ColorsOf(from);
  const GraphColors to_colors = palette.ColorsOf(to);
  return FindIsomorphism(from.graph(), to.graph(), from_colors, to_colors, budget);
}

IsomorphismSearch FindReverseSymmetry(const Topology& topology, int64_t budget) {
  return FindIsomorphism(TransposeTopology(topology), topology, budget);
}

NodeOrbits FindNodeOrbits(const Topology& topology, int64_t budget) {
  return FindNodeOrbits(topology.graph(), Palette().ColorsOf(topology), budget);
}

}  // namespace tutti

#include "tutti/graph/isomorphism.h"

#include <algorithm>

#include "search.h"

namespace tutti {
namespace {

// Each of [0, count) once.
template <class Id>
bool IsPermutation(const std::vector<Id>& map, int32_t count) {
  if (map.size() != static_cast<size_t>(count)) return false;
  std::vector<char> seen(map.size(), 0);
  for (Id id : map)
    if (id.value < 0 || id.value >= count || seen[id.index()]++ != 0) return false;
  return true;
}

uint64_t ColorOf(const std::vector<uint64_t>& colors, size_t index) {
  return colors.empty() ? 0 : colors[index];
}

}  // namespace

IsomorphismSearch FindIsomorphism(const Digraph& from, const Digraph& to,
                                  const GraphColors& from_colors, const GraphColors& to_colors,
                                  int64_t budget) {
  if (from.num_nodes() != to.num_nodes() || from.num_links() != to.num_links()) return {};
  graph::PairedSearch search(from, to, from_colors, to_colors);
  const int64_t first = search.work();
  IsomorphismSearch result = search.Find(std::nullopt, budget);
  result.work += first;
  return result;
}

bool IsIsomorphism(const Digraph& from, const Digraph& to, const Isomorphism& candidate,
                   const GraphColors& from_colors, const GraphColors& to_colors) {
  if (from.num_nodes() != to.num_nodes() || from.num_links() != to.num_links()) return false;
  if (!IsPermutation(candidate.node_map, to.num_nodes())) return false;
  if (!IsPermutation(candidate.link_map, to.num_links())) return false;
  for (NodeId node : from.Nodes())
    if (ColorOf(from_colors.nodes, node.index()) !=
        ColorOf(to_colors.nodes, candidate.node_map[node.index()].index()))
      return false;
  for (LinkId link : from.Links()) {
    const LinkId image = candidate.link_map[link.index()];
    if (candidate.node_map[from.tail(link).index()] != to.tail(image) ||
        candidate.node_map[from.head(link).index()] != to.head(image) ||
        ColorOf(from_colors.links, link.index()) != ColorOf(to_colors.links, image.index()))
      return false;
  }
  return true;
}

}  // namespace tutti

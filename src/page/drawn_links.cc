#include "drawn_links.h"

#include "tutti/page/page.h"

namespace tutti {

bool IsGrouped(const Topology& topology) {
  return topology.num_nodes() > PageData::kMaxDrawnNodes ||
         topology.num_links() > PageData::kMaxDrawnLinks;
}

GroupLinks SumLinks(const Topology& topology, const Grouping& grouping) {
  GroupLinks out;
  const auto ends = [&](LinkId link) {
    return std::pair(grouping.group_of[topology.tail(link).index()],
                     grouping.group_of[topology.head(link).index()]);
  };
  for (const LinkId link : topology.Links()) {
    const auto key = ends(link);
    if (key.first != key.second) out.index.emplace(key, 0);
  }
  for (auto& [key, position] : out.index) {
    position = out.ends.size();
    out.ends.push_back(key);
  }
  out.links.resize(out.ends.size());
  out.bandwidth.resize(out.ends.size());
  for (const LinkId link : topology.Links()) {
    const auto found = out.index.find(ends(link));
    if (found == out.index.end()) continue;
    ++out.links[found->second];
    out.bandwidth[found->second] += topology.bandwidth(link);
  }
  return out;
}

std::vector<double> OnDrawnLinks(const Topology& topology, std::vector<double> values) {
  if (!IsGrouped(topology)) return values;
  const Grouping grouping = GroupNodes(topology, PageData::kMaxGroups);
  const GroupLinks sums = SumLinks(topology, grouping);
  std::vector<double> drawn(sums.ends.size());
  for (const LinkId link : topology.Links()) {
    const auto found = sums.index.find({grouping.group_of[topology.tail(link).index()],
                                        grouping.group_of[topology.head(link).index()]});
    if (found != sums.index.end()) drawn[found->second] += values[link.index()];
  }
  return drawn;
}

}  // namespace tutti

#include "classic/link_index.h"

#include <algorithm>

namespace tutti::classic {

LinkIndex::LinkIndex(const Digraph& graph) : graph_(&graph) {
  links_.reserve(static_cast<size_t>(graph.num_links()));
  for (LinkId link : graph.Links()) links_.push_back(link);
  for (NodeId node : graph.Nodes()) {
    const IdRange<LinkId> out = graph.OutLinks(node);
    if (out.empty()) continue;
    const auto first = links_.begin() + out[0].value;
    std::stable_sort(first, first + out.size(),
                     [&graph](LinkId a, LinkId b) { return graph.head(a) < graph.head(b); });
  }
}

std::span<const LinkId> LinkIndex::From(NodeId tail) const {
  const IdRange<LinkId> out = graph_->OutLinks(tail);
  if (out.empty()) return {};
  return {links_.data() + out[0].value, static_cast<size_t>(out.size())};
}

std::span<const LinkId> LinkIndex::Between(NodeId tail, NodeId head) const {
  const std::span<const LinkId> out = From(tail);
  const auto first = std::lower_bound(out.begin(), out.end(), head,
                                      [this](LinkId a, NodeId b) { return graph_->head(a) < b; });
  auto last = first;
  while (last != out.end() && graph_->head(*last) == head) ++last;
  return out.subspan(static_cast<size_t>(first - out.begin()), static_cast<size_t>(last - first));
}

}  // namespace tutti::classic

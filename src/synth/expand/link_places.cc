#include "expand/link_places.h"

#include <algorithm>
#include <tuple>

namespace tutti::expand {

LinkPlaces::LinkPlaces(const Topology& topology)
    : topology_(topology), place_(static_cast<size_t>(topology.num_links())) {
  sorted_.reserve(place_.size());
  for (LinkId link : topology.Links()) sorted_.push_back(link);
  const auto key = [&topology](LinkId link) {
    return std::tuple(topology.tail(link), topology.head(link), topology.bandwidth(link),
                      topology.alpha_ps(link), link);
  };
  std::sort(sorted_.begin(), sorted_.end(), [&key](LinkId a, LinkId b) { return key(a) < key(b); });
  for (size_t i = 1; i < sorted_.size(); ++i) {
    const LinkId before = sorted_[i - 1], link = sorted_[i];
    if (topology.tail(link) == topology.tail(before) &&
        topology.head(link) == topology.head(before))
      place_[link.index()] = place_[before.index()] + 1;
  }
}

std::optional<LinkId> LinkPlaces::Find(NodeId tail, NodeId head, int32_t place) const {
  const IdRange<LinkId> out = topology_.OutLinks(tail);
  if (out.empty()) return std::nullopt;
  // Links are numbered by tail: those out of `tail` stand at the same places when sorted.
  const auto first = sorted_.begin() + out[0].value;
  const auto last = first + out.size();
  const auto found = std::lower_bound(first, last, head, [this](LinkId link, NodeId wanted) {
    return topology_.head(link) < wanted;
  });
  if (last - found <= place || topology_.head(found[place]) != head) return std::nullopt;
  return found[place];
}

}  // namespace tutti::expand

// LinkPlaces: finds links by their ends, parallel ones by their place among each other, so that
// links of two networks with the same ends can be told to be the same.
//
// Complexity  Build O(m log m); Find() O(log degree); At() O(1).
// Threads     Immutable: share freely.
#pragma once

#include <optional>
#include <vector>

#include "tutti/topo/topology.h"

namespace tutti::expand {

class LinkPlaces {
 public:
  explicit LinkPlaces(const Topology& topology);  // must outlive this

  // Which one `link` is among its parallel links, in the order (bandwidth, alpha, id).
  int32_t PlaceOf(LinkId link) const { return place_[link.index()]; }
  // The link from tail to head with this place; none where there is none.
  std::optional<LinkId> Find(NodeId tail, NodeId head, int32_t place) const;

 private:
  const Topology& topology_;
  std::vector<LinkId> sorted_;  // by tail, head, bandwidth, alpha, id
  std::vector<int32_t> place_;
};

}  // namespace tutti::expand

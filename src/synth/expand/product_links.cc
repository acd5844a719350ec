#include "expand/product_links.h"

#include <optional>

#include "expand/link_places.h"
#include "tutti/base/check.h"

namespace tutti::expand {

ProductLinks::ProductLinks(std::span<const Topology* const> factors, const Topology& product) {
  std::vector<LinkPlaces> places_in;
  int32_t stride = product.num_nodes();
  for (const Topology* factor : factors) {
    size_.push_back(factor->num_nodes());
    stride /= size_.back();
    stride_.push_back(stride);
    places_in.emplace_back(*factor);
    order_.emplace_back(static_cast<size_t>(factor->num_links()));
    for (NodeId node : factor->Nodes()) {
      size_t order = 0;
      for (LinkId link : factor->OutLinks(node)) order_.back()[link.index()] = order++;
    }
  }
  TUTTI_CHECK(stride == 1);
  const LinkPlaces places(product);
  for (NodeId node : product.Nodes())
    for (size_t f = 0; f < factors.size(); ++f) {
      first_.push_back(links_.size());
      const Topology& factor = *factors[f];
      const NodeId tail{Coordinate(node, f)};
      for (LinkId link : factor.OutLinks(tail)) {
        const NodeId head{node.value + (factor.head(link).value - tail.value) * stride_[f]};
        const std::optional<LinkId> found = places.Find(node, head, places_in[f].PlaceOf(link));
        TUTTI_CHECK(found.has_value());
        links_.push_back(*found);
      }
    }
}

}  // namespace tutti::expand

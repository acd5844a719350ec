// ProductLinks: where the links of its factors are in a Cartesian product.
//
// Model       Node (v_1, .., v_n) is row-major, the first factor slowest. A link of factor f stands
//             once for every choice of the other coordinates.
// Complexity  Build O(m log m) for the m links of the product; Link() O(1).
#pragma once

#include <span>
#include <vector>

#include "tutti/topo/topology.h"

namespace tutti::expand {

class ProductLinks {
 public:
  // `product` is CartesianProduct of `factors`, but for bandwidth and alpha.
  ProductLinks(std::span<const Topology* const> factors, const Topology& product);

  // How much the coordinate of factor f counts in a node's number, and what it is.
  int32_t stride(size_t f) const { return stride_[f]; }
  int32_t Coordinate(NodeId node, size_t f) const { return node.value / stride_[f] % size_[f]; }
  // What `link` of factor f is out of `tail`, whose coordinate there is the link's tail.
  LinkId Link(NodeId tail, size_t f, LinkId link) const {
    return links_[first_[tail.index() * stride_.size() + f] + order_[f][link.index()]];
  }

 private:
  std::vector<int32_t> stride_, size_;
  std::vector<std::vector<size_t>> order_;  // of a factor's link among those out of its tail
  std::vector<size_t> first_;               // of each (node, factor) in links_
  std::vector<LinkId> links_;
};

}  // namespace tutti::expand

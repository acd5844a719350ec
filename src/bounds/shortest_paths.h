// Shortest paths from one source by integer lengths of links, with a workspace that is reused.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/graph/digraph.h"

namespace tutti {

class ShortestPaths {
 public:
  // `graph` and `lengths` (in [0, kFar), one a link) must outlive this. Paths of kFar - 1 or more
  // count as kFar - 1.
  ShortestPaths(const Digraph& graph, std::span<const int64_t> lengths);

  // O(m log n); O(n + m) when all lengths are equal.
  void Run(NodeId source);

  int64_t distance(NodeId node) const { return distance_[node.index()]; }
  // The nodes reached, each after the one before it on its way; the source first.
  const std::vector<NodeId>& order() const { return order_; }
  // The link by which the way enters the node; not for the source.
  LinkId last_link(NodeId node) const { return last_link_[node.index()]; }

  static constexpr int64_t kFar = int64_t{1} << 62;

 private:
  void RunBreadthFirst(NodeId source);
  void RunDijkstra(NodeId source);

  const Digraph& graph_;
  std::span<const int64_t> lengths_;
  bool equal_lengths_;
  std::vector<int64_t> distance_;
  std::vector<LinkId> last_link_;
  std::vector<NodeId> order_;
  std::vector<std::pair<int64_t, NodeId>> heap_;
};

}  // namespace tutti

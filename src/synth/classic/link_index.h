// LinkIndex: the links from one node to another.
//
// Complexity  Build O(m log m); Between() O(log degree). 4 bytes per link.
// Threads     Immutable: share freely.
#pragma once

#include <span>
#include <vector>

#include "tutti/graph/digraph.h"

namespace tutti::classic {

class LinkIndex {
 public:
  explicit LinkIndex(const Digraph& graph);  // must outlive the index

  // Parallel links ascend; empty where the nodes are not adjacent.
  std::span<const LinkId> Between(NodeId tail, NodeId head) const;
  // All links out of `tail`, ascending by head, then by id.
  std::span<const LinkId> From(NodeId tail) const;

 private:
  const Digraph* graph_;
  std::vector<LinkId> links_;
};

}  // namespace tutti::classic

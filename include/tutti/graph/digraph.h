// Digraph: an immutable directed multigraph in compressed rows, both ways.
//
// Invariants  G1  Nodes are [0, num_nodes()); links are [0, num_links()), sorted by tail, ties in
//                 the order they were given, so OutLinks(n) is contiguous.
//             G2  Parallel links stay apart; self-loops are refused (a Topology keeps its own).
//             G3  InLinks(n) ascends.
// Complexity  Build O(n + m); accessors O(1); 16 m + 8 n bytes.
// Threads     Immutable: share freely.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tutti/base/check.h"
#include "tutti/base/ids.h"

namespace tutti {

class Digraph {
 public:
  using Arc = std::pair<NodeId, NodeId>;  // tail, head

  Digraph() : Digraph(0, {}) {}
  // Arcs in any order; the caller has checked that ends are in range and differ. The link made
  // from arcs[order()[l]] is l.
  Digraph(int32_t num_nodes, std::span<const Arc> arcs, std::vector<int32_t>* order = nullptr);

  int32_t num_nodes() const { return num_nodes_; }
  int32_t num_links() const { return static_cast<int32_t>(head_.size()); }
  IdRange<NodeId> Nodes() const { return {0, num_nodes()}; }
  IdRange<LinkId> Links() const { return {0, num_links()}; }

  NodeId tail(LinkId link) const { return tail_[Index(link)]; }
  NodeId head(LinkId link) const { return head_[Index(link)]; }
  IdRange<LinkId> OutLinks(NodeId node) const {
    return {first_out_[node.index()], first_out_[node.index() + 1]};
  }
  std::span<const LinkId> InLinks(NodeId node) const {
    const auto first = static_cast<size_t>(first_in_[node.index()]);
    const auto last = static_cast<size_t>(first_in_[node.index() + 1]);
    return {in_links_.data() + first, last - first};
  }

 private:
  size_t Index(LinkId link) const {
    TUTTI_DCHECK(0 <= link.value && link.value < num_links());
    return link.index();
  }

  int32_t num_nodes_ = 0;
  std::vector<int32_t> first_out_, first_in_;
  std::vector<NodeId> tail_, head_;
  std::vector<LinkId> in_links_;
};

// The same graph with every link turned around. `link_map`, when given, receives for each link of
// the result the link of `graph` that it came from.
Digraph Transpose(const Digraph& graph, std::vector<LinkId>* link_map = nullptr);

}  // namespace tutti

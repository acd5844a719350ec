// The search behind isomorphism.h and automorphism.h: two graphs refined side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "refinement.h"
#include "tutti/graph/isomorphism.h"

namespace tutti::graph {

class PairedSearch {
 public:
  // The graphs and colours must outlive this. Both graphs have equally many nodes and links.
  PairedSearch(const Digraph& from, const Digraph& to, const GraphColors& from_colors,
               const GraphColors& to_colors);

  // An isomorphism, one that takes `pinned`'s first node to its second when given. Gives up once
  // work() exceeds `limit`. Can be called again.
  IsomorphismSearch Find(std::optional<std::pair<NodeId, NodeId>> pinned, int64_t limit);

  int64_t work() const { return refinement_.work(); }
  // The cells of the refinement that every isomorphism keeps, by node of `from`.
  int32_t cell_of(NodeId node) const { return refinement_.cell_of(node); }

 private:
  // A cell under trial: `node` of the first graph against each of `candidates` of the second.
  struct Level {
    size_t mark;
    NodeId node;
    std::vector<NodeId> candidates;
    size_t next;
  };

  NodeId InSecond(NodeId node) const { return {node.value + half_}; }
  bool Fix(NodeId node, NodeId candidate);
  // The next cell to try, node x against x + shift first; nullopt: every cell is decided.
  std::optional<Level> OpenLevel(int32_t shift) const;
  std::optional<Isomorphism> ReadOff() const;

  const Digraph& from_;
  const Digraph& to_;
  const GraphColors& from_colors_;
  const GraphColors& to_colors_;
  int32_t half_;
  Digraph both_;
  Refinement refinement_;
  bool feasible_;
};

}  // namespace tutti::graph

// Colour refinement: the coarsest partition of the nodes into cells such that nodes of one cell
// have equally many links (of each colour) to and from every cell. With undo, for searches.
//
// Invariants  R1  elements_ lists the nodes cell by cell; a cell is named by its first position.
//             R2  Between calls no cell waits to be a splitter, unless Refine() returned false.
//             R3  The cells, their order and the trace do not depend on how nodes are numbered.
// Complexity  Refine: O(links of the splitters log n), each node being in O(log n) splitters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tutti/graph/digraph.h"
#include "tutti/graph/isomorphism.h"

namespace tutti::graph {

uint64_t MixBits(uint64_t word);

class Refinement {
 public:
  // Paired: nodes [0, half) belong to one graph and the rest to another; a cell with unequally many
  // of the two ends the refinement. half = 0: one graph. `graph` must outlive this.
  Refinement(const Digraph& graph, const GraphColors& colors, int32_t half);

  // False: paired graphs are unbalanced, so no isomorphism keeps this partition. Ends early, at a
  // point that does not depend on how nodes are numbered, once `max_work` links were looked at;
  // then only trace() and Undo() are allowed.
  bool Refine(int64_t max_work = std::numeric_limits<int64_t>::max());
  // Puts `nodes`, all of one cell that has others as well, into a cell of their own. Refine()
  // after.
  void Individualize(std::span<const NodeId> nodes);

  // The state now, for Undo(). After a Refine() that failed only Undo() is allowed.
  size_t Mark() const { return splits_.size(); }
  void Undo(size_t mark);

  int32_t cell_of(NodeId node) const { return cell_of_[node.index()]; }
  std::span<const NodeId> NodesOf(int32_t cell) const {
    return {elements_.data() + cell, static_cast<size_t>(size_[static_cast<size_t>(cell)])};
  }
  // The first of the smallest cells of more than `least` nodes; -1 when there is none.
  int32_t SmallestCellAbove(int32_t least) const;

  // A hash of all splits since construction or ResetTrace().
  uint64_t trace() const { return trace_; }
  void ResetTrace(uint64_t trace) { trace_ = trace; }
  int64_t work() const { return work_; }  // links looked at

 private:
  struct Split {
    int32_t parent, child;
  };

  void Enqueue(int32_t cell);
  bool SplitBy(int32_t cell, bool by_heads);
  bool SplitTouched(int32_t cell);
  bool IsBalanced(int32_t begin, int32_t end) const;
  void MoveTo(int32_t position, NodeId node);
  void AddCell(int32_t parent, int32_t begin, int32_t size);

  const Digraph& graph_;
  const int32_t half_;
  std::vector<uint64_t> weight_;  // of every link, from its colour
  std::vector<NodeId> elements_;
  std::vector<int32_t> position_, cell_of_;
  std::vector<int32_t> size_;    // by first position
  std::vector<char> is_queued_;  // by first position
  std::vector<int32_t> queue_;
  std::vector<Split> splits_;
  uint64_t trace_ = 0;
  int64_t work_ = 0;

  // Scratch of SplitBy.
  std::vector<uint64_t> key_;
  std::vector<char> is_touched_;
  std::vector<std::vector<NodeId>> touched_;  // by cell
  std::vector<int32_t> touched_cells_;
};

}  // namespace tutti::graph

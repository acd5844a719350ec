// The concurrent flow as a linear program small enough to be solved in fractions: a row per link, not
// a row a source and node.
//
// Model       Of each source whose flow stands for those alike, a spanning tree carries all its
//             demand; a column moves flow from the tree's way to the head of another bundle to the
//             way over that bundle. Rows keep the load of each orbit of bundles below strain x
//             bandwidth, and the flow of tree bundles at 0 or more, these only once they are
//             broken. Columns are added once they pay. The prices of the first rows are lengths of
//             the bundles; that no column pays means that the flow uses shortest paths only.
// Exactness   All entries are whole numbers; the last step is LinearProgram::SolveExactly, and
//             columns and rows are then looked for again in fractions.
// Complexity  A program of o orbits of bundles has o rows and some more, and about two columns a
//             row at the end; the full one of n sources, m bundles has n m columns and n^2 + m
//             rows.
// Reference   [alltoall-mcf] 3.1.2 for the full program.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/flow/automorphisms.h"
#include "tutti/flow/network.h"
#include "tutti/flow/source_flow.h"
#include "tutti/lp/linear_program.h"

namespace tutti {

// Whole numbers of any size.
struct ExactSourceFlow {
  int32_t source = 0;
  int32_t alike = 0;            // sources it stands for, itself included
  std::vector<Rational> units;  // a bundle; may go around cycles
};
struct ExactFlow {
  Rational units_per_demand;
  std::vector<ExactSourceFlow> flows;  // of the representatives
  std::vector<Rational> lengths;       // of an orbit of bundles
};

class ExactFlowProgram {
 public:
  // `near`: a good flow of every rank, from whose largest shares the trees are made.
  ExactFlowProgram(const FlowNetwork& network, const DemandTable& demand, const NetworkGroup& group,
                   const std::vector<SourceFlow>& near);

  // The least strain and the lengths that prove it. kResourceExhausted says what was too much, the
  // time included; kCancelled.
  Result<ExactFlow> Solve(const Deadline& deadline);

 private:
  struct Chord {
    int32_t bundle, column;
  };
  struct Tree {
    int32_t source = 0, alike = 0;
    std::vector<int32_t> order;      // nodes that paths lead to, each after its parent
    std::vector<int32_t> in, depth;  // of a node: the tree's bundle into it (-1), its depth
    std::vector<int64_t> demand;     // of a node: what the tree carries into it
    std::vector<int32_t> row;        // of a node: that keeps the flow into it at 0 or more; or -1
    std::vector<Chord> chords;
    std::vector<bool> has_chord;  // a bundle
  };

  Tree Plant(int32_t source, const SourceFlow& near) const;
  Status MakeRows(const std::vector<SourceFlow>& near);
  Status Settle(const Deadline& deadline);
  Result<bool> Extend(const ExactLpSolution& solution);

  // Calls visit(node, sign) for each tree bundle (into the node) that flow over `bundle` adds to or
  // relieves.
  template <class Visit>
  void VisitCycle(const Tree& tree, int32_t bundle, const Visit& visit) const;
  template <class Number>
  bool AddColumnsThatPay(const std::vector<Number>& prices, const Number& tolerance);
  template <class Number>
  bool AddRowsThatBreak(const std::vector<Number>& columns, const Number& scale,
                        const Number& tolerance);
  template <class Number>
  std::vector<Number> TreeFlow(const Tree& tree, const std::vector<Number>& columns,
                               const Number& scale) const;
  void AddChord(Tree& tree, int32_t bundle);
  void AddRow(Tree& tree, int32_t node);
  ExactFlow FlowOf(const ExactLpSolution& solution) const;

  size_t Orbit(int32_t bundle) const {
    return static_cast<size_t>(group_.bundle_orbit[static_cast<size_t>(bundle)]);
  }

  const FlowNetwork& network_;
  const DemandTable& demand_;
  const NetworkGroup& group_;
  std::vector<Tree> trees_;
  LinearProgram program_;
  int demand_exponent_ = 0;  // columns are in 2^this of demand
  Status fault_;
};

}  // namespace tutti

// Moves the flow of one source from its longest used paths to the shortest ones.
//
// Method      Potentials are the lengths of the longest used paths. Bundles along which they rise
//             may be used without closing a cycle; the shortest path over them is found for every
//             node, and where it ends in another bundle than the longest used path, flow moves from
//             the segment of the one, back to where both part, to that of the other: a Newton step,
//             capped. Lengths follow at once.
// Complexity  O(n + m) for the scan, and the segments that change.
// Reference   [Dial 2006], algorithm B; deviation: the bush is found anew in every visit, so that
//             only bundles with flow are kept.
#pragma once

#include <cstdint>
#include <vector>

#include "link_lengths.h"
#include "tutti/flow/network.h"
#include "tutti/flow/source_flow.h"

namespace tutti {

class Shifter {
 public:
  explicit Shifter(const FlowNetwork& network);

  // Improves `flow` under `lengths`, whose loads and lengths it updates. Nodes whose longest used
  // way is longer than their shortest one by less than this part of it are left alone.
  // What shifts saved: flow times the difference of lengths.
  double Visit(SourceFlow& flow, LinkLengths& lengths, double slack);

 private:
  struct Slot {
    int32_t bundle;
    int32_t tail;
    double flow;
  };
  void FindLongest(const SourceFlow& flow, const std::vector<double>& length);
  void LabelUnusedNodes(SourceFlow& flow, const std::vector<double>& length);
  void SortByPotential(std::vector<int32_t>& order);
  bool SortByMoves(std::vector<int32_t>& order, size_t most);
  void SortRoughly(std::vector<int32_t>& order);
  void FindShortest(const SourceFlow& flow, const std::vector<double>& length);
  double ShiftInto(int32_t node, LinkLengths& lengths);
  double SlopeOverOrbits(int32_t node, size_t meeting, const LinkLengths& lengths);
  void Store(SourceFlow& flow);

  const FlowNetwork& network_;
  std::vector<double> longest_, shortest_;      // of a node
  std::vector<int32_t> first_used_, end_used_;  // of a node: its part of the flow's bundles
  std::vector<int32_t> place_;                  // of a node, in the order
  std::vector<int32_t> long_slot_, short_slot_;
  std::vector<int32_t> first_on_shelf_, shelf_, sorted_;
  std::vector<int32_t> first_slot_;  // of a place in the order
  std::vector<Slot> slots_;
  std::vector<size_t> orbits_;  // a bundle for each on the segments that change
  std::vector<int32_t> net_;    // of an orbit: how much more often it gains than loses
};

}  // namespace tutti

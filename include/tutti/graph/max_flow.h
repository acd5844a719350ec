// MaxFlow: exact integer maximum flow into one sink from any number of supplies, and the cut that
// proves it. Made for sweeps over many sinks: a run touches only what it explores, stops as soon
// as the value asked for is reached, and is undone in the time it took.
//
// Model       A directed multigraph with capacities on arcs and a supply at each node: how much may
//             enter the network there, 0 by default, or without limit (the usual source). The flow
//             value is what arrives at the sink.
// Invariants  F1  Capacities, supplies and limits are in [0, kLargest], so no sum that occurs can
//                 overflow: a partial flow never exceeds the limit of its run, and the residuals of
//                 the two directions of an arc add up to its capacity.
//             F2  The same calls give the same flow and the same cut everywhere.
// Complexity  n nodes, m arcs: O(n^2 m) worst, each phase O(n + m) and usually far less: the search
//             starts at the sink and ends at the nearest unlimited supply.
//             Memory (2 sizeof(Capacity) + 8) * 2 m + about 40 n bytes.
// Threads     One thread at a time.
// Reference   Dinitz's blocking flows, from the sink backwards. Deviation: finite supplies at any
//             distance join the same phase; each phase still raises the distance of every node
//             that keeps supply, which bounds the number of phases by n.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/base/ids.h"

namespace tutti {

__extension__ using WideCapacity = __int128;

template <class Capacity>  // int64_t or WideCapacity
class MaxFlow {
 public:
  static constexpr Capacity kLargest = (Capacity{1} << (8 * sizeof(Capacity) - 2)) - 1;

  struct Arc {
    NodeId tail, head;
    Capacity capacity;
  };

  // Arc k of `arcs` is arc k here. Ends must be in range; an arc from a node to itself is inert.
  MaxFlow(int32_t num_nodes, std::span<const Arc> arcs);

  int32_t num_nodes() const { return static_cast<int32_t>(supply_.size()); }
  // These end the last run: its flow is undone.
  void SetCapacity(int32_t arc, Capacity capacity);
  void SetSupply(NodeId node, Capacity supply);
  void SetUnlimitedSupply(NodeId node);

  // The smaller of `limit` and the largest flow into `sink`, from scratch.
  Capacity Run(NodeId sink, Capacity limit = kLargest);

  // After a Run that stayed below its limit: marks the nodes that still reach the sink. No other
  // cut on whose side away from the sink all unlimited supplies lie is smaller: capacity of the
  // arcs into the side plus the supplies within it = the value of the run.
  std::vector<bool> SinkSide() const;
  // What the last run sends over the arc.
  Capacity Flow(int32_t arc) const;

 private:
  // An arc seen from one of its ends: what may still flow from `other` to this end.
  struct Half {
    int32_t other;
    int32_t mate;  // the same arc at the other end
  };
  struct Frame {
    int32_t node;
    int32_t half;  // of the node before in the stack, through which this one is asked
    Capacity need, got;
  };

  void Undo();
  void ForgetLevels();
  bool FindLevels(int32_t sink);
  Capacity Pull(int32_t sink, Capacity need);
  void OpenFrame(int32_t node, int32_t half, Capacity need);
  void Shift(int32_t half, Capacity amount);
  bool HasSupply(int32_t node) const;

  std::vector<int32_t> first_;         // of the halves of a node
  std::vector<Half> half_;             //
  std::vector<Capacity> capacity_in_;  // of a half: from `other` to this end
  std::vector<Capacity> residual_in_;  // the same, less the flow
  std::vector<int32_t> half_of_arc_;   // at its head
  std::vector<Capacity> supply_, used_;
  std::vector<bool> unlimited_;
  std::vector<int32_t> level_, cursor_;  // hops to the sink; the next half to try
  std::vector<int32_t> seen_, touched_halves_, touched_nodes_;
  std::vector<Frame> stack_;
};

extern template class MaxFlow<int64_t>;
extern template class MaxFlow<WideCapacity>;

}  // namespace tutti

// CutNetwork: what a cut sees of a topology, in whole units of the bandwidths' common divisor, so
// that flows on it stay exact and small. Self-loops are not in it: they carry nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/rational.h"
#include "tutti/graph/max_flow.h"
#include "tutti/topo/topology.h"

namespace tutti {

Rational RationalOf(WideCapacity value);

struct CutNetwork {
  struct Arc {
    NodeId tail, head;
    int64_t capacity;
  };

  explicit CutNetwork(const Topology& topology);

  // The same with every arc turned around.
  CutNetwork Transposed() const;
  bool is_rank(NodeId node) const { return node.value < num_ranks; }
  // The capacity of the arcs that leave the marked nodes.
  WideCapacity CapacityOut(const std::vector<bool>& inside) const;
  int64_t RanksIn(const std::vector<bool>& inside) const;
  // By node: what its arcs bring in and take out.
  std::vector<WideCapacity> InCapacities() const;
  std::vector<WideCapacity> OutCapacities() const;
  // Every node takes in as much as it gives out: then so does every set of nodes.
  bool IsBalanced() const { return InCapacities() == OutCapacities(); }
  // From any node to any other as much as back: cables of two equal links.
  bool IsSymmetric() const;
  Rational BytesPerSecond(WideCapacity capacity) const { return RationalOf(capacity) * unit; }
  // Ranks in the order of a breadth-first search from `first`, which comes first.
  std::vector<NodeId> RanksByDistance(NodeId first) const;

  int32_t num_nodes = 0, num_ranks = 0;
  int64_t unit = 1;  // bytes/s
  std::vector<Arc> arcs;
  WideCapacity total_capacity = 0;
};

}  // namespace tutti

// All demands of an all-to-all sent over shortest paths: what that costs, and what it puts on links.
#pragma once

#include <cstdint>
#include <vector>

#include "shortest_paths.h"
#include "sources.h"
#include "tutti/base/rational.h"
#include "tutti/coll/collective.h"
#include "tutti/graph/max_flow.h"
#include "tutti/topo/topology.h"

namespace tutti {

// What `from` sends to `to`, relative to the collective's weight_of_size(); 0 to itself.
inline int64_t DemandWeight(const Collective& collective, NodeId from, NodeId to) {
  return from == to ? 0
                    : collective.weight(ShardId{from.value * collective.num_ranks() + to.value});
}
WideCapacity TotalDemandWeight(const Collective& collective);

// The paths from one source after the other. Lengths are in [0, 2^30], so that sums over all pairs
// fit: 2^30 a link, 2^16 links a way, 2^62 of weight a source, 2^16 sources.
class SourceRouter {
 public:
  // All three must outlive this.
  SourceRouter(const Topology& topology, const Collective& collective,
               const std::vector<int64_t>& lengths)
      : topology_(topology), collective_(collective), paths_(topology.graph(), lengths) {}

  // Sum of weight x distance over the targets.
  WideCapacity Run(NodeId source);
  // Adds to each link the weight that the last source's paths carry over it.
  void AddLoad(std::vector<WideCapacity>& load);

 private:
  const Topology& topology_;
  const Collective& collective_;
  ShortestPaths paths_;
  NodeId source_{0};
  std::vector<WideCapacity> beyond_;  // weight of the paths through a node
};

struct AllPairsCost {
  WideCapacity demand_distance = 0;
  std::vector<WideCapacity> load;  // a link; empty unless asked for
};
// Symmetric sources cost the same under symmetric lengths, but load other links: with a load
// `sources` must be every rank.
AllPairsCost RouteAllPairs(const Topology& topology, const Collective& collective,
                           const std::vector<int64_t>& lengths, const std::vector<Source>& sources,
                           bool with_load);

// The limit, in seconds a byte of M, that the lengths prove.
Rational LimitOf(const Topology& topology, const Collective& collective,
                 const std::vector<int64_t>& lengths, WideCapacity demand_distance);

}  // namespace tutti

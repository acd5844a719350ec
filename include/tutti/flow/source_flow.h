// The flow of one source on its way to every rank: sparse and acyclic.
//
// Units       flow in mean demands: a network whose demands are all alike sends 1 to each rank.
// Invariants  `order` holds the nodes that the source's data reaches, the source first; bundles
//             with flow run forward in it. `bundles` are grouped by head, in that order, and ascend
//             within a group.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/flow/network.h"

namespace tutti {

struct SourceFlow {
  std::vector<int32_t> order;
  std::vector<int32_t> bundles;
  std::vector<double> flow;  // of each of `bundles`, > 0
};

// All demand of the source over its shortest paths under lengths 1 / capacity, each way to a rank
// carrying the same. Optimal where the network is symmetric enough.
SourceFlow EqualSplit(const FlowNetwork& network, const DemandTable& demand, double mean_demand,
                      int32_t source);

// The flow in whole units, exactly conserving: from the last node of the order back, what a node
// needs is drawn from its in-bundles in proportion to their flow. Each bundle after those that feed
// it.
std::vector<BundleFlow> InUnits(const FlowNetwork& network, const DemandTable& demand,
                                const SourceFlow& flow, int64_t units_per_demand);

}  // namespace tutti

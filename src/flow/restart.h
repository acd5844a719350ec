// What an earlier answer is worth on another network: its flows, set right where nodes and links
// have gone, come or changed their demand, and the lengths that it ended with.
//
// Method      Nodes are matched by name, bundles by their ends. What a source's flow leaves without
//             a way in gets one from a node that it does not feed; then, from the last node back,
//             what each needs is drawn from its in-bundles in proportion to what they carried.
//             Nodes stay in their order as far as that goes.
// Complexity  O(n + m) a source, and O(n) for each node that must be given a way in. Sources in
//             parallel.
#pragma once

#include <vector>

#include "tutti/base/result.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/flow/network.h"
#include "tutti/flow/source_flow.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct Restart {
  std::vector<SourceFlow> flows;  // one a rank; without an order where the start has none
  std::vector<double> lengths;    // of a bundle
};

// kInvalidArgument: the start names nodes or bundles that it does not have.
Result<Restart> RestartFrom(const Topology& topology, const FlowNetwork& network,
                            const DemandTable& demand, double mean_demand, const FlowStart& start);

}  // namespace tutti

// The optimum itself, proven: a flow and lengths in whole numbers that reach the same f.
//
// Method      The linear program of flow_program.h over the orbits of the network's automorphisms;
//             its flows are taken to all sources, cycles are taken out of them, and where all
//             numbers fit they are those of ConcurrentFlow.
// Complexity  That of flow_program.h; the flow has about as many parts as there are pairs of ranks,
//             with numbers of some hundred bits where nothing is alike.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/result.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/flow/network.h"
#include "tutti/flow/source_flow.h"

namespace tutti {

// Fills bundles, demand, f_lower, f_upper and either flow and lengths or `wide`. `near`: a good
// flow of every rank. kResourceExhausted says what the proof would need.
Result<ConcurrentFlow> ProveOptimum(const Topology& topology, const FlowNetwork& network,
                                    const DemandTable& demand,
                                    const std::vector<int64_t>& demand_matrix,
                                    const std::vector<SourceFlow>& near, const Deadline& deadline);

}  // namespace tutti

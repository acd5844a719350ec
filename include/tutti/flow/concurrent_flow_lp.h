// The concurrent flow problem as the linear programs of the paper: slow, but plain. For comparison
// and as an oracle; concurrent_flow.h solves the same problem faster.
//
// Model       As in concurrent_flow.h; parallel links are one. The decomposition of the paper is
//             the master program (kPerSource) and then, a source each, the child program: what of
//             the source's flow goes to which destination.
// Complexity  Simplex over n (n - 1) m (per pair) or n m (per source) columns: seconds at 16 and at
//             100 ranks. A child has a column for each destination and bundle with flow.
// Errors      kInvalidArgument as SolveConcurrentFlow; those of LinearProgram::Solve.
// Reference   [alltoall-mcf] 3.1.1 (1)-(5) and 3.1.2 (6)-(14).
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/topo/topology.h"

namespace tutti {

enum class FlowProgram : uint8_t {
  kPerPair,    // equations (1) to (5): a flow for each source and destination
  kPerSource,  // equations (6) to (9), the master program: one flow a source
};

// f, in units of the smallest link's bandwidth, as certified by LinearProgram. `demand` as in
// ConcurrentFlowOptions.
Result<double> SolveConcurrentFlowProgram(const Topology& topology, FlowProgram program,
                                          const std::vector<int64_t>& demand = {});

struct ChildFlows {
  // To each rank, for each of flow.flow_from[source] what goes to it there, in demands. Nothing to
  // the source itself.
  std::vector<std::vector<double>> to;
  double total = 0;  // of all of it, which (10) minimises
};

// Equations (10) to (14), the child program of one source: within its flow to all others, one to
// each. `flow` is one of this topology (CheckConcurrentFlow).
Result<ChildFlows> SolveChildProgram(const Topology& topology, const ConcurrentFlow& flow,
                                     NodeId source);

}  // namespace tutti

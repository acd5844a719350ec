// The concurrent flow problem as the linear programs of the paper: slow, but plain. For comparison
// and as an oracle; concurrent_flow.h solves the same problem faster.
//
// Model       As in concurrent_flow.h; parallel links are one.
// Complexity  Simplex over n (n - 1) m (per pair) or n m (per source) columns: seconds at 16 and at
//             100 ranks.
// Errors      kInvalidArgument as SolveConcurrentFlow; those of LinearProgram::Solve.
// Reference   [alltoall-mcf] 3.1.1 (1)-(5) and 3.1.2 (6)-(9).
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/result.h"
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

}  // namespace tutti

// Flow-level simulation of a routing: every pair sends at once, hardware forwards, links are shared
// fairly.
//
// Model       What a pair sends is cut into equal chunks, one a unit of its paths' weights
//             (sched/routing_chunks.h), and all chunks of all pairs start together. A chunk streams
//             over its whole path at one rate (cut-through); the rates are max-min fair: no chunk
//             can get more without a chunk of no higher rate getting less. Rates change whenever
//             chunks end. The last byte of a chunk arrives the alphas of its path later.
//             Hosts: where NICs forward, a rank's host limit (topo/topology.h) holds for what it
//             sends and what it receives itself; where hosts forward, for all that its links bring
//             and take.
// Units       seconds and bytes as doubles. [M] is what one rank sends, its own block included;
//             with a demand matrix what the rank sends that sends most (coll/collective.h).
// Bound       Never faster than the busiest link or host needs for its bytes.
// Complexity  O(events x hops log links): an event is a time at which chunks end, at most one a
//             path, few for routings of even load.
// Errors      kInvalidArgument: size below 1, a routing of another network. kCancelled.
// Reference   [alltoall-mcf] 5.1, 5.2 (the fabric), 5.5.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

enum class ForwardingPlace : uint8_t { kNic, kHost };

struct FlowSimOptions {
  int64_t size_bytes = 0;  // [M], >= 1
  ForwardingPlace forwarding = ForwardingPlace::kNic;
};

struct FlowSimReport {
  double time_s = 0;            // the last arrival
  double busy_s = 0;            // the same without alphas: when the last chunk has left
  double algbw = 0, busbw = 0;  // bytes/s, as nccl-tests
  double bound_s = 0;           // what the busiest link or host needs for its bytes
  int64_t events = 0;           // times at which rates changed
  std::vector<double> link_bytes;
};

Result<FlowSimReport> SimulateRouting(const Topology& topology, const Routing& routing,
                                      const FlowSimOptions& options);

}  // namespace tutti

// The independent judge of routings: whether the paths are paths of this network and carry what
// every pair of ranks sends.
//
// Rules       R1 .. R4 of sched/routing.h; the right network; every path is a chain of links from
//             its source to its destination that visits no node twice; the weights of a pair sum to
//             demand x units_per_demand; what crosses one link fits in 63 bits. Whether layers are
//             free of deadlock is another question.
// Independence  Shares no code with synth; needs (topology, routing) and nothing else.
// Complexity  O(hops), sources in parallel; memory O(links + max_violations a thread).
// Threads     The same report for any number of threads. Interruptible (base/cancel.h).
// Reference   [alltoall-mcf] 3.1.4, 4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/sched/routing.h"
#include "tutti/verify/verifier.h"

namespace tutti {

enum class RoutingFault : uint8_t {
  kStructure,  // R1, R2, numbers out of range
  kWrongTopology,
  kBrokenPath,  // no chain of links from the source to the destination
  kNodeTwice,
  kSplit,     // the weights of a pair are not what it sends
  kLayer,     // R4
  kOverflow,  // what crosses a link is too much to count
};
std::string_view Name(RoutingFault kind);  // "broken-path"

struct RoutingViolation {
  RoutingFault kind;
  std::string message;  // which pair, path and hop
  int64_t path = -1;    // index of the path, -1 for none
};

struct RoutingReport {
  // In order of pairs and paths, at most max_violations of them; empty means proven correct.
  std::vector<RoutingViolation> violations;
  int64_t num_violations = 0;  // all of them
  int64_t paths = 0;
  int32_t longest_path = 0;  // hops
  // As RoutingRate of sched/routing.h, counted anew from the paths, host limits included; 0 where
  // something is wrong.
  Rational rate;
  bool cancelled = false;  // interrupted: nothing is proven
  bool verified() const { return num_violations == 0 && !cancelled; }
};

RoutingReport CheckRouting(const Topology& topology, const Routing& routing,
                           const VerifyOptions& options = {});

}  // namespace tutti

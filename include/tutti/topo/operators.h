// The expansion operators of the expression language as functions, and the numbers of what they
// make.
//
// Model       Each returns what the operator of the expression language makes of `base`, links in
//             canonical order, named `line(NAME)` and so on after the name of `base` (unnamed where
//             that has none).
// Numbers     line: rank i is port i of LinePorts(base). degree: node v becomes ranks n v, ..,
//             n v + n - 1; each link u -> v one from every u_i to every v_j. power, product: node
//             (v_1, v_2, ...) is row-major, the first factor slowest; a link changes one of the
//             v_i. bidirectional: the nodes stay.
// Complexity  O(links of the result), times its logarithm.
// Errors      As the operators: switches, self-loops under degree, unlike links under line, sizes
//             above kMaxNodes and kMaxLinks of expression.h.
// Reference   [direct-connect] Definitions 3, 12, 13; A.6. [alltoall-mcf] figure 2.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

Result<Topology> LineDigraph(const Topology& base);
Result<Topology> DegreeExpansion(const Topology& base, int64_t n);
Result<Topology> CartesianPower(const Topology& base, int64_t n);
Result<Topology> CartesianProduct(std::span<const Topology> factors);
// `base` where every link has its reverse; otherwise the union of `base` and its transpose, a link
// of each standing beside the other, self-loops too: a network of degree d gets degree 2 d.
Result<Topology> BidirectionalUnion(const Topology& base);

// The host limits of `base` as links: ranks keep their numbers, and each limited one gets switches
// for its NIC. With host forwarding everything between its links passes its host, so that a flow
// between ranks keeps to the limits of topology.h; with NIC forwarding only what begins or ends
// there does. kInvalidArgument: no rank has a limit.
Result<Topology> HostForwarding(const Topology& base);
Result<Topology> NicForwarding(const Topology& base);
// HostForwarding(base) where a rank has a limit, else `base`.
Result<Topology> HostLimitsAsLinks(const Topology& base);

// The largest degree by which unwind(base,degree=d) takes all switches out; of a network without
// switches any does. kInfeasible: says which switch cannot be unwound, and why.
Result<int64_t> LargestUnwinding(const Topology& base);

// A link, or a self-loop: what becomes a rank of the line digraph.
struct LinePort {
  NodeId tail{0}, head{0};
  std::optional<LinkId> link;  // none: a self-loop
};
// By tail; of one tail first its links in their order, then its self-loops.
std::vector<LinePort> LinePorts(const Topology& base);

}  // namespace tutti

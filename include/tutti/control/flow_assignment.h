// Which route each flow of each job takes: fair flow assignment (FFA), and with priorities (PFA).
//
// Model       A flow has a demand and a set of routes; a link a capacity and a load from elsewhere.
//             FFA: jobs in the order of their numbers; the k-th flow of each job in turn, k = 0, 1,
//             ...; a flow gets the route with the smallest excess, which is the largest load +
//             demand - capacity over the route's links, signed; ties: the fewest flows of its job on
//             the route, then the lowest route. Its demand is added to the links.
//             Stages: flows of a lower stage are fitted before all of a higher one, in each of the
//             two kinds of turns; equal stages (all, where none is given) go by turns as above.
//             PFA: some routes are reserved for the classes from one on. Flows of classes below any
//             reservation are fitted first, on routes open to them; then the others, the highest
//             class first, each on all routes open to it.
//             Links that all routes of a flow share (its NICs) are no part of routes: they would
//             hide the differences.
//             Repeated when jobs join or leave: flows that run stay where they are unless moving
//             makes the largest excess smaller by at least 1/20 of the capacity of the link that
//             has it.
// Exactness   integers only; the same answer for the same input on any machine.
// Complexity  O(flows x routes x hops + flows log flows).
// Errors      kInvalidArgument: a flow of no routes, a demand below 0, links that are none.
//             kInfeasible: a class that reservations leave without a route, with job and class.
// Reference   [mccs] 4.3 examples 2 and 3, which follow Hedera's best fit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"

namespace tutti {

// Routes of a set, each the links that it passes; the sets that flows name.
struct RouteOption {
  std::vector<LinkId> links;
  int32_t reserved_from = 0;  // only classes of at least this
};

struct FlowRequest {
  int32_t job = 0;
  int32_t priority = 0;   // [class], more is better
  int64_t demand = 0;     // bytes/s
  int32_t route_set = 0;  // index into FlowProblem::route_sets
  int32_t running = -1;   // the route that it has now; -1: none
  int32_t stage = 0;      // lower ones of equal turn are fitted first
};

struct FlowProblem {
  std::vector<int64_t> capacity;    // by link, bytes/s
  std::vector<int64_t> background;  // by link, or empty
  std::vector<std::vector<RouteOption>> route_sets;
  std::vector<FlowRequest> flows;  // those of a job in the order of its channels
};

struct FlowAssignment {
  std::vector<int32_t> route;  // by flow
  std::vector<int64_t> load;   // by link, background included
  int64_t largest_excess = 0;  // load - capacity, over links that flows use; 0 without any
};

// The errors above of kInvalidArgument.
Status CheckFlowProblem(const FlowProblem& problem);
Result<FlowAssignment> AssignFlows(const FlowProblem& problem);

// Demands of a communicator's flows: the smaller of what its two ports have for each of their flows.
// `from` and `to` number ports; flows of one port share it by direction. Ports' bandwidths by number.
std::vector<int64_t> FlowDemands(std::span<const int32_t> from, std::span<const int32_t> to,
                                 std::span<const int64_t> port_bandwidth);

}  // namespace tutti

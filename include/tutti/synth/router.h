// Routers: algorithms that choose the ways of all-to-all, not its times. What `-a name` runs when
// the name is a router's.
//
// Model       A router takes a network and what every rank sends to every other and gives a Routing
//             (sched/routing.h) whose rate f (RoutingRate) is to be large: 1 / f is the time of the
//             busiest link.
// Threads     Same bytes for any number of threads. Interruptible (base/cancel.h).
// Reference   [alltoall-mcf] 3.2, 5.1.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/sched/routing.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct RouterOptions {
  uint64_t seed = 1;
  std::vector<int64_t> demand = {};  // as in Routing
  double gap = 1e-3;                 // of routers that approximate: where they stop
  double max_seconds = 0;            // 0: no limit; with one the answer depends on the machine
  int64_t max_units = 1'000'000;     // equal chunks that a pair's data may be cut into
};

struct Routed {
  Routing routing;
  // Proven limit of the rate of any routing of this network, where the router knows one.
  std::optional<Rational> f_upper = {};
};

struct Router {
  std::string_view name;         // as in `-a name`
  std::string_view description;  // one line
  // The routing keeps R1 .. R4. kInfeasible: this router has no routing for this network (says
  // why).
  Result<Routed> (*route)(const Topology&, const RouterOptions&);
  bool on_request_only = false;  // may take minutes: `tutti compare` runs it only when it is named
};

// In the order in which `tutti compare` shows them by default.
std::span<const Router> Routers();
// nullptr: no router has this name.
const Router* FindRouter(std::string_view name);

// What callers use: checks the options (kInvalidArgument: a demand matrix of the wrong size, with a
// negative entry or without any demand; a gap or limit that makes no sense), routes, and writes
// down network, demand, router and seed in the routing.
Result<Routed> RunRouter(const Router& router, const Topology& topology,
                         const RouterOptions& options);

}  // namespace tutti

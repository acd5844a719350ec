// Routers: algorithms that choose the paths of all-to-all, not its times. What `-a name` runs when
// the name is a router's.
//
// Model       A router takes a network and what every rank sends to every other and gives a Routing
//             (sched/routing.h) whose rate f (RoutingRate) is to be large: 1 / f is the time of the
//             busiest link or host. Host limits hold for what begins or ends at a rank.
// Threads     Same bytes for any number of threads. Interruptible (base/cancel.h).
// Errors      kInvalidArgument: a demand matrix of the wrong size, with a negative entry or without
//             any demand; a gap or limit that makes no sense. kInfeasible: this router has no
//             routing for this network (says why). kResourceExhausted: more paths than memory or
//             numbers hold. kCancelled. A time limit that is hit is no error: the best answer so
//             far.
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

// Which paths a router that is given a set of paths may use.
enum class PathSet : uint8_t {
  kDisjoint,  // as many as share no link, of the fewest hops in total
  kShortest,  // all of the fewest hops
  kBounded,   // all of at most so many hops more than the fewest
};

struct RouterOptions {
  uint64_t seed = 1;
  std::vector<int64_t> demand = {};  // as in Routing
  std::optional<double> gap = {};  // of routers that approximate: where they stop; default: theirs
  double max_seconds = 0;          // 0: no limit; with one the answer depends on the machine
  // Limit of the simplex method, for routers that search with integer programs; 0: theirs, or none where
  // there is a limit of time. Unlike a time it means the same on every machine.
  int64_t max_iterations = 0;
  PathSet paths = PathSet::kDisjoint;
  int32_t extra_hops = 1;  // of PathSet::kBounded
  int64_t max_units = 0;   // equal chunks that a pair's data may be cut into; 0: as many as needed
  int32_t max_paths = 0;   // of a pair, the heaviest; 0: all
};

struct Routed {
  Routing routing;
  // Proven limit of the rate of any routing of this network, where the router knows one.
  std::optional<Rational> f_upper = {};
  // The same for routings over the paths that the router chose among, by its rules.
  std::optional<Rational> paths_upper = {};
  // What the limits on chunks and paths cost: rate lost over the rate before. Below 0 where
  // rounding happened to help.
  Rational loss = {};
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

// What callers use: checks the options, routes, keeps to max_paths and max_units, makes the units
// as few as weights allow (DivideByCommonFactor), and writes down network,
// demand, router and seed in the routing.
Result<Routed> RunRouter(const Router& router, const Topology& topology,
                         const RouterOptions& options);

// The same for an all-to-all within groups of ranks (coll/collective.h), all of them at once: routed on the
// network of those that are in one (topo/group_network.h), where the others are switches or gone. Rates
// are of the mean pair of a group. options.demand is empty. Errors also as MakeGroupNetwork.
Result<Routed> RunRouterOfGroups(const Router& router, const Topology& topology,
                                 const Collective& collective, const RouterOptions& options);

}  // namespace tutti

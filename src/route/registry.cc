#include "registry.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "tutti/base/memory.h"
#include "tutti/flow/network.h"
#include "tutti/route/router.h"
#include "tutti/sched/routing_chunks.h"

namespace tutti {
namespace {

Status CheckOptions(const Topology& topology, const RouterOptions& options) {
  if (options.gap && !(*options.gap >= 0 && *options.gap < 1))
    return InvalidArgument(fmt::format("the gap {} is not in [0, 1)", *options.gap));
  if (!(options.max_seconds >= 0))
    return InvalidArgument(fmt::format("a limit of {} s makes no sense", options.max_seconds));
  if (options.max_units < 0)
    return InvalidArgument(fmt::format("cannot cut into {} chunks", options.max_units));
  if (options.max_paths < 0)
    return InvalidArgument(fmt::format("cannot use {} paths per pair", options.max_paths));
  if (options.extra_hops < 0)
    return InvalidArgument(
        fmt::format("no path is {} hops longer than the shortest", options.extra_hops));
  return CheckDemand(topology.num_ranks(), options.demand);
}

// At least a path of a hop for each pair.
Status CheckPairMemory(const Topology& topology, const RouterOptions& options) {
  if (!options.demand.empty()) return {};
  constexpr int64_t kBytesPerPair = 8 + 16 + sizeof(LinkId);
  return CheckMemory(fmt::format("a routing of {} ranks", topology.num_ranks()),
                     kBytesPerPair * topology.num_ranks() * topology.num_ranks(),
                     AvailableMemoryBytes());
}

// Routers look at links only: what crosses a host does not depend on the paths, so that the best
// paths for the links are the best paths, and only the limits of the rate are lower.
void KeepToHosts(const Topology& topology, Routed& routed) {
  const std::optional<Rational> of_hosts = HostRate(topology, routed.routing.demand);
  if (!of_hosts) return;
  for (std::optional<Rational>* upper : {&routed.f_upper, &routed.paths_upper})
    if (*upper && *of_hosts < **upper) *upper = *of_hosts;
}

}  // namespace

std::span<const Router> Routers() {
  // One line a router.
  // clang-format off
  static const std::vector<Router> kTable = {
      {"mcf",          "all paths of a flow of (nearly) the largest rate", RouteMcf},
      {"mcf-extp",     "the widest paths of such a flow, weighed anew where --max-paths drops some", RouteMcfExtP},
      {"pmcf",         "the best split over link-disjoint, shortest or bounded paths", RoutePmcf},
      {"ewsp",         "equal weight over all shortest paths", RouteEwsp},
      {"sssp",         "one shortest path a pair, over the links that carry least so far", RouteSssp},
      {"dor",          "dimension after dimension on tori and meshes", RouteDor},
      {"native",       "the first of a pair's shortest paths, whatever others use", RouteNative},
      {"fptas",        "multiplicative weights on shortest-path trees (Karakostas)", RouteFptas, true},
      {"ilp-disjoint", "one of the link-disjoint paths per pair, by integer program", RouteIlpDisjoint, true},
      {"ilp-shortest", "one of the shortest paths per pair, by integer program", RouteIlpShortest, true},
  };
  // clang-format on
  return kTable;
}

const Router* FindRouter(std::string_view name) {
  for (const Router& router : Routers())
    if (router.name == name) return &router;
  return nullptr;
}

Result<Routed> RunRouter(const Router& router, const Topology& topology,
                         const RouterOptions& options) {
  if (const Status valid = CheckOptions(topology, options); !valid)
    return tl::unexpected(valid.error());
  if (topology.num_ranks() < 2) return InvalidArgument("a routing needs at least two ranks");
  if (const Status fits = CheckPairMemory(topology, options); !fits)
    return tl::unexpected(fits.error());
  Result<Routed> routed = router.route(topology, options);
  if (!routed) return routed;
  routed->routing.demand = options.demand;
  KeepToHosts(topology, *routed);
  if (options.max_paths > 0 || options.max_units > 0) {
    Routing limited = options.max_paths > 0 ? KeepHeaviestPaths(routed->routing, options.max_paths)
                                            : routed->routing;
    if (options.max_units > 0) limited = LimitUnits(topology, limited, options.max_units);
    // What is left of what the router itself left.
    const Rational kept =
        (Rational(1) - routed->loss) * (Rational(1) - RateLoss(topology, routed->routing, limited));
    routed->loss = Rational(1) - kept;
    routed->routing = std::move(limited);
  }
  DivideByCommonFactor(routed->routing);
  routed->routing.topology_fingerprint = topology.Fingerprint();
  routed->routing.algorithm = router.name;
  routed->routing.seed = options.seed;
  return routed;
}

}  // namespace tutti

#include "route/registry.h"

#include <fmt/format.h>

#include <vector>

#include "mcf/network.h"
#include "tutti/synth/router.h"

namespace tutti {
namespace {

Status CheckOptions(const Topology& topology, const RouterOptions& options) {
  if (!(options.gap >= 0 && options.gap < 1))
    return InvalidArgument(fmt::format("the gap {} is not in [0, 1)", options.gap));
  if (!(options.max_seconds >= 0))
    return InvalidArgument(fmt::format("a limit of {} s makes no sense", options.max_seconds));
  if (options.max_units < 1)
    return InvalidArgument(fmt::format("cannot cut into {} chunks", options.max_units));
  return CheckDemand(topology.num_ranks(), options.demand);
}

}  // namespace

std::span<const Router> Routers() {
  // One line a router.
  // clang-format off
  static const std::vector<Router> kTable = {
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
  Result<Routed> routed = router.route(topology, options);
  if (!routed) return routed;
  routed->routing.demand = options.demand;
  routed->routing.topology_fingerprint = topology.Fingerprint();
  routed->routing.algorithm = router.name;
  routed->routing.seed = options.seed;
  return routed;
}

}  // namespace tutti

// The routers of this folder, for the table in registry.cc: one function a router.
#pragma once

#include "tutti/route/router.h"

namespace tutti {

Result<Routed> RouteMcf(const Topology& topology, const RouterOptions& options);
Result<Routed> RouteMcfExtP(const Topology& topology, const RouterOptions& options);
Result<Routed> RoutePmcf(const Topology& topology, const RouterOptions& options);
Result<Routed> RouteEwsp(const Topology& topology, const RouterOptions& options);
Result<Routed> RouteSssp(const Topology& topology, const RouterOptions& options);
Result<Routed> RouteDor(const Topology& topology, const RouterOptions& options);
Result<Routed> RouteNative(const Topology& topology, const RouterOptions& options);
Result<Routed> RouteFptas(const Topology& topology, const RouterOptions& options);
Result<Routed> RouteIlpDisjoint(const Topology& topology, const RouterOptions& options);
Result<Routed> RouteIlpShortest(const Topology& topology, const RouterOptions& options);

}  // namespace tutti

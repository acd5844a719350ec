#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "concurrent_flow_testing.h"
#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/sched/routing_chunks.h"
#include "tutti/synth/flow_paths.h"
#include "tutti/synth/router.h"
#include "tutti/verify/routing.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// Proven before use.
Routed MustRoute(std::string_view name, const Topology& topology,
                 const RouterOptions& options = {}) {
  const Router* router = FindRouter(name);
  EXPECT_NE(router, nullptr) << name;
  Result<Routed> routed = RunRouter(*router, topology, options);
  EXPECT_TRUE(routed.has_value()) << name << ": " << (routed ? "" : routed.error().message);
  const RoutingReport report = CheckRouting(topology, routed->routing);
  EXPECT_TRUE(report.verified()) << name << " on " << topology.name() << ": "
                                 << report.violations.front().message;
  EXPECT_EQ(report.rate, RoutingRate(topology, routed->routing));
  EXPECT_EQ(routed->routing.algorithm, name);
  return *std::move(routed);
}

Rational RateOf(std::string_view name, const std::string& expression) {
  const Topology topology = MustParse(expression);
  return RoutingRate(topology, MustRoute(name, topology).routing);
}

TEST(Routers, NativeTakesTheFirstShortestPath) {
  const Topology ring = MustParse("ring(4)");
  const Routing routing = MustRoute("native", ring).routing;
  EXPECT_EQ(routing.num_paths(), 12);
  EXPECT_EQ(routing.units_per_demand, 1);
  // All that goes two hops passes the lower of both neighbours first.
  const PathId far = routing.Paths(NodeId{1}, NodeId{3})[0];
  EXPECT_EQ(ring.head(routing.Hops(far)[0]), NodeId{0});
}

TEST(Routers, SsspSpreadsWhatNativePilesUp) {
  // K(4,4): a pair of one side has four ways. Native sends all over the first; sssp what one rank
  // sends over one, which no other rank's does. 2/5 is possible.
  EXPECT_EQ(RateOf("native", "bipartite(4)"), Rational(1, 7));
  EXPECT_EQ(RateOf("sssp", "bipartite(4)"), Rational(1, 5));
}

TEST(Routers, RefuseBadInput) {
  const Router* router = FindRouter("sssp");
  const Topology ring = MustParse("ring(3)");
  const auto fault = [&](RouterOptions options) {
    const Result<Routed> routed = RunRouter(*router, ring, options);
    EXPECT_FALSE(routed.has_value());
    return routed ? "" : routed.error().message;
  };
  EXPECT_THAT(fault({.demand = {1, 2, 3}}), HasSubstr("3 ranks must have 9 entries, got 3"));
  EXPECT_THAT(fault({.demand = {0, -1, 0, 0, 0, 0, 0, 0, 0}}), HasSubstr("must be >= 0, got -1"));
  EXPECT_THAT(fault({.gap = 1}), HasSubstr("the gap 1 is not in [0, 1)"));
  EXPECT_THAT(fault({.max_seconds = -1}), HasSubstr("-1 s makes no sense"));
  EXPECT_THAT(fault({.max_units = -1}), HasSubstr("cannot cut into -1 chunks"));
  EXPECT_THAT(fault({.max_paths = -1}), HasSubstr("cannot use -1 paths"));
  EXPECT_EQ(FindRouter("nobody"), nullptr);
}

// --- Paths of a flow --------------------------------------------------------------------------

TEST(PathsOfFlow, ReachExactlyTheRateOfTheFlow) {
  for (const char* expression :
       {"ring(5)", "bipartite(3)", "uniring(3,4)", "genkautz(4,30)", "torus(3,3,3)", "switch(5)",
        "without(torus(4,4),links=2,seed=3)", "torus(2,4,bw=[10,30]GB/s)", "dgx1"}) {
    SCOPED_TRACE(expression);
    const Topology topology = MustParse(expression);
    const ConcurrentFlow flow = MustSolve(topology, {});
    const Result<Routing> routing = PathsOfFlow(topology, flow);
    ASSERT_TRUE(routing.has_value());
    const RoutingReport report = CheckRouting(topology, *routing);
    EXPECT_TRUE(report.verified()) << report.violations.front().message;
    EXPECT_EQ(report.rate, flow.f_lower);
  }
}

TEST(PathsOfFlow, WidestFirst) {
  // 0 sends to 3 over 1 (two units of three) and over 2.
  Topology::Builder builder(4);
  for (const auto& [tail, head] : {std::pair(0, 1), {0, 2}, {1, 3}, {2, 3}, {3, 0}})
    builder.AddLink(NodeId{tail}, NodeId{head}, {});
  const Topology topology = *std::move(builder).Build();
  ConcurrentFlow flow;
  flow.bundles = BundlesOf(topology);  // by head: 3 -> 0, 0 -> 1, 0 -> 2, 1 -> 3, 2 -> 3
  flow.units_per_demand = 3;
  flow.demand.assign(16, 0);
  flow.demand[3] = 1;
  flow.flow_from = {{{1, 1}, {2, 2}, {3, 1}, {4, 2}}, {}, {}, {}};
  const Routing routing = *PathsOfFlow(topology, flow);
  EXPECT_THAT(routing.weight, testing::ElementsAre(2, 1));
  EXPECT_EQ(topology.head(routing.Hops(PathId{0})[0]), NodeId{2});
}

// --- Properties of all routers -------------------------------------------------------------------

TEST(Routers, AllPassTheJudgeBelowTheLimitOnRandomNetworks) {
  Random random(3);
  for (int seed = 0; seed < 30; ++seed) {
    const auto ranks = static_cast<int32_t>(2 + random.Below(9));
    const Topology topology =
        RandomNetwork(random, ranks, static_cast<int32_t>(random.Below(3)), 1 + random.Below(5));
    RouterOptions options;
    if (seed % 2 == 1) options.demand = RandomDemand(random, ranks);
    ConcurrentFlowOptions flow_options;
    flow_options.demand = options.demand;
    const Rational upper = MustSolve(topology, flow_options).f_upper;
    for (const Router& router : Routers()) {
      SCOPED_TRACE(router.name);
      const Result<Routed> tried = RunRouter(router, topology, options);
      if (!tried && tried.error().code == ErrorCode::kInfeasible) continue;
      const Routed routed = MustRoute(router.name, topology, options);
      const Rational rate = RoutingRate(topology, routed.routing);
      EXPECT_LE(rate, upper);
      EXPECT_GT(rate, Rational(0));
      if (routed.f_upper) {
        EXPECT_LE(rate, *routed.f_upper);
      }
      if (routed.paths_upper) {
        EXPECT_LE(rate, *routed.paths_upper);
      }
      EXPECT_EQ(tried->routing, routed.routing);
    }
  }
}

TEST(Routers, SameRoutingOnAnyNumberOfThreads) {
  const Topology topology = MustParse("genkautz(2,8)");
  for (const Router& router : Routers()) {
    SCOPED_TRACE(router.name);
    SetNumThreads(1);
    const Result<Routed> one = RunRouter(router, topology, {});
    SetNumThreads(4);
    const Result<Routed> four = RunRouter(router, topology, {});
    SetNumThreads(0);
    ASSERT_EQ(one.has_value(), four.has_value());
    if (one) {
      EXPECT_EQ(one->routing, four->routing);
    }
  }
}

TEST(Routers, LimitsOnPathsAndChunksHold) {
  const Topology topology = MustParse("genkautz(2,8)");
  for (const Router& router : Routers()) {
    SCOPED_TRACE(router.name);
    if (!RunRouter(router, topology, {})) continue;
    const Routed whole = MustRoute(router.name, topology);
    const Routed limited = MustRoute(router.name, topology, {.max_units = 6, .max_paths = 2});
    EXPECT_LE(limited.routing.units_per_demand, 6);
    for (const NodeId s : topology.Ranks())
      for (const NodeId d : topology.Ranks()) EXPECT_LE(limited.routing.Paths(s, d).size(), 2);
    // Those given sets of paths have smaller sets, and lose by rounding alone.
    if (!limited.paths_upper || router.name == "mcf-extp") {
      EXPECT_EQ(limited.loss, RateLoss(topology, whole.routing, limited.routing));
    }
  }
}

TEST(Routers, StopWhenInterrupted) {
  const Topology topology = MustParse("genkautz(2,8)");
  for (const Router& router : Routers()) {
    SCOPED_TRACE(router.name);
    const bool can = RunRouter(router, topology, {}).has_value();
    RequestCancel();
    const Result<Routed> routed = RunRouter(router, topology, {});
    ResetCancel();
    ASSERT_FALSE(routed.has_value());
    if (can) {
      EXPECT_EQ(routed.error().code, ErrorCode::kCancelled);
    }
  }
}

}  // namespace
}  // namespace tutti

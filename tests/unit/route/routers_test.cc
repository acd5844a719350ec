#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flow_paths.h"
#include "path_sets.h"
#include "tutti/base/cancel.h"
#include "tutti/base/parallel.h"
#include "tutti/base/random.h"
#include "tutti/flow/network.h"
#include "tutti/route/router.h"
#include "tutti/sched/routing_chunks.h"
#include "tutti/topo/operators.h"
#include "tutti/verify/routing.h"
#include "unit/flow/concurrent_flow_testing.h"

namespace tutti {
namespace {

using testing::HasSubstr;

const std::vector<int64_t> kAllAlike;

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
  const Topology topology = Parse(expression);
  return RoutingRate(topology, MustRoute(name, topology).routing);
}

TEST(Routers, NativeTakesTheFirstShortestPath) {
  const Topology ring = Parse("ring(4)");
  const Routing routing = MustRoute("native", ring).routing;
  EXPECT_EQ(routing.num_paths(), 12);
  EXPECT_EQ(routing.units_per_demand, 1);
  // All that goes two hops passes the lower of both neighbours first.
  const PathId far = routing.Paths(NodeId{1}, NodeId{3})[0];
  EXPECT_EQ(ring.head(routing.Hops(far)[0]), NodeId{0});
}

TEST(Routers, SsspSpreadsWhatNativePilesUp) {
  // K(4,4): a pair of one side has four ways. Native sends all over the first; sssp takes the ways
  // in turn. 2/5 is possible.
  EXPECT_EQ(RateOf("native", "bipartite(4)"), Rational(1, 7));
  EXPECT_EQ(RateOf("sssp", "bipartite(4)"), Rational(1, 3));
  // Each link carries one hop of its own pair and two of those two hops apart, at best.
  EXPECT_EQ(RateOf("sssp", "ring(4)"), Rational(1, 2));
}

TEST(Routers, SsspIsAsFarFromTheFlowAsThePaperSays) {
  // Figure 5, tori of 27 ranks less 3 links or 3 ranks: the flow's busiest link carries about 30 %
  // less than that of SSSP.
  for (const char* what : {"links", "nodes"}) {
    double flow = 0, sssp = 0;
    for (const int32_t seed : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
      const Topology topology = Parse("without(torus(3,3,3)," + std::string(what) +
                                      "=3,seed=" + std::to_string(seed) + ")");
      ConcurrentFlowOptions options;
      options.gap = 1e-3;
      flow += 1 / SolveConcurrentFlow(topology, options)->f_lower.ToDouble();
      sssp += 1 / RoutingRate(topology, MustRoute("sssp", topology).routing).ToDouble();
    }
    EXPECT_NEAR(flow / sssp, 0.7, 0.02) << what;
  }
  // Figures 8 and 9: up to 1.6 times the optimum.
  for (const char* expression : {"genkautz(4,30)", "genkautz(4,44)", "genkautz(8,81)"}) {
    const Topology topology = Parse(expression);
    const Rational best = SolveConcurrentFlow(topology, {})->f_upper;
    const Rational over = best / RoutingRate(topology, MustRoute("sssp", topology).routing);
    EXPECT_LE(over, Rational(16, 10)) << expression;
    EXPECT_GE(over, Rational(12, 10)) << expression;
  }
}

TEST(Routers, SearchesEndByCountsThatAreTheSameEverywhere) {
  const Topology topology = Parse("without(torus(3,3,3),links=3)");
  RouterOptions options;
  options.max_iterations = 500;
  const Routed first = MustRoute("ilp-disjoint", topology, options);
  const Routed again = MustRoute("ilp-disjoint", topology, options);
  EXPECT_TRUE(first.routing == again.routing);
}

TEST(Routers, EqualWeightMeansEqual) {
  const Topology topology = Parse("bipartite(4)");
  const Routing routing = MustRoute("ewsp", topology).routing;
  EXPECT_EQ(RoutingRate(topology, routing), Rational(2, 5));
  // Four ways to another of one's own side, one to each of the other.
  EXPECT_EQ(routing.Paths(NodeId{0}, NodeId{1}).size(), 4);
  EXPECT_EQ(routing.Paths(NodeId{0}, NodeId{7}).size(), 1);
  for (const PathId path : routing.Paths(NodeId{0}, NodeId{1}))
    EXPECT_EQ(routing.weight[path.index()] * 4, routing.units_per_demand);
  // Parallel links are ways of their own.
  EXPECT_EQ(MustRoute("ewsp", Parse("uniring(2,3)")).routing.Paths(NodeId{0}, NodeId{2}).size(), 4);
}

TEST(Routers, DimensionsInOrder) {
  const std::pair<const char*, Rational> grids[] = {
      {"torus(3,3,3)", {1, 9}}, {"torus(4,4)", {1, 8}}, {"torus(2,4)", {1, 4}},
      {"mesh(4,4)", {1, 16}},   {"torus(5,3)", {1, 9}}, {"mesh(5)", {1, 6}},
      {"torus(2,2,2)", {1, 4}},
  };
  for (const auto& [expression, f] : grids) {
    const Topology topology = Parse(expression);
    ASSERT_TRUE(topology.grid().has_value()) << expression;
    EXPECT_EQ(RoutingRate(topology, MustRoute("dor", topology).routing), f) << expression;
  }
  const Topology torus = Parse("torus(3,5)");
  const Routing routing = MustRoute("dor", torus).routing;
  // From (0, 0) to (1, 3): down the first dimension, then two back in the second.
  const std::span<const LinkId> hops = routing.Hops(routing.Paths(NodeId{0}, NodeId{8})[0]);
  ASSERT_EQ(hops.size(), 3U);
  EXPECT_EQ(torus.head(hops[0]), NodeId{5});
  EXPECT_EQ(torus.head(hops[1]), NodeId{9});
  const Result<Routed> none = RunRouter(*FindRouter("dor"), Parse("genkautz(2,6)"), {});
  EXPECT_EQ(none.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(none.error().message, HasSubstr("is for tori and meshes, 'genkautz(2,6)' is none"));
}

// One path a pair, all choices tried.
TEST(Routers, IntegerProgramFindsTheBestChoice) {
  Random random(9);
  for (int seed = 0; seed < 12; ++seed) {
    const Topology topology = RandomNetwork(random, 3, static_cast<int32_t>(random.Below(2)), 2);
    const DemandTable demand(3, kAllAlike);
    const Routing paths = *ListPaths(topology, demand, PathSet::kDisjoint, 0);
    std::vector<int32_t> at(9, 0);
    Rational best;
    for (bool more = true; more;) {
      RoutingBuilder builder(3, 1);
      for (int32_t pair = 0; pair < 9; ++pair) {
        const IdRange<PathId> of_pair = paths.Paths(NodeId{pair / 3}, NodeId{pair % 3});
        if (!of_pair.empty())
          builder.AddPath(paths.Hops(of_pair[at[static_cast<size_t>(pair)]]), 1);
        builder.EndPair();
      }
      best = std::max(best, RoutingRate(topology, std::move(builder).Finish()));
      more = false;
      for (int32_t pair = 0; pair < 9 && !more; ++pair) {
        int32_t& index = at[static_cast<size_t>(pair)];
        more = ++index < paths.Paths(NodeId{pair / 3}, NodeId{pair % 3}).size();
        if (!more) index = 0;
      }
    }
    const Routed routed = MustRoute("ilp-disjoint", topology);
    EXPECT_EQ(RoutingRate(topology, routed.routing), best);
    EXPECT_GE(*routed.paths_upper, best);
  }
}

TEST(Routers, MultiplicativeWeightsKeepTheirPromise) {
  for (const char* expression : {"genkautz(3,12)", "mesh(3,3)", "switch(5)", "dgx1"}) {
    const Topology topology = Parse(expression);
    const Routed routed = MustRoute("fptas", topology, {.gap = 0.05});
    const Rational rate = RoutingRate(topology, routed.routing);
    EXPECT_LE(rate, *routed.f_upper) << expression;
    EXPECT_GE(rate, *routed.f_upper * Rational(949, 1000)) << expression;
  }
}

TEST(Routers, TimeLimitGivesTheBestSoFar) {
  const Topology topology = Parse("genkautz(4,40)");
  for (const Router& router : Routers()) {
    if (router.name == "dor") continue;
    const Routed routed = MustRoute(router.name, topology, {.gap = 0, .max_seconds = 1e-3});
    EXPECT_GT(RoutingRate(topology, routed.routing), Rational(0)) << router.name;
  }
}

TEST(Routers, FewerPathsAreWeighedAnew) {
  const Topology topology = Parse("genkautz(4,60)");
  const Routed whole = MustRoute("mcf-extp", topology);
  const Routed one = MustRoute("mcf-extp", topology, {.max_paths = 1});
  EXPECT_EQ(one.routing.num_paths(), 60 * 59);
  EXPECT_GT(one.loss, Rational(0));
  const Rational kept = RoutingRate(topology, KeepHeaviestPaths(whole.routing, 2));
  EXPECT_GE(RoutingRate(topology, MustRoute("mcf-extp", topology, {.max_paths = 2}).routing), kept);
}

// --- Link-disjoint paths

void ExpectDisjoint(const Topology& topology, const Routing& routing) {
  for (const NodeId s : topology.Ranks())
    for (const NodeId d : topology.Ranks()) {
      std::set<LinkId> used;
      for (const PathId path : routing.Paths(s, d))
        for (const LinkId link : routing.Hops(path))
          EXPECT_TRUE(used.insert(link).second) << topology.name() << " " << s.value << d.value;
    }
}

TEST(Routers, PmcfChoosesAmongSetsOfDisjointPaths) {
  // Disjoint paths of the fewest hops leave 8 % of 7/53 at N = 16, other sets nearly nothing.
  const Topology sixteen = Parse("genkautz(4,16)");
  const Routed routed = MustRoute("pmcf", sixteen);
  EXPECT_GE(*routed.f_upper, Rational(7, 53));
  EXPECT_GE(RoutingRate(sixteen, routed.routing), Rational(7, 53) * Rational(99, 100));
  Random random(5);
  for (const char* expression :
       {"genkautz(4,10)", "genkautz(4,16)", "genkautz(3,22)", "without(torus(3,4),links=2)",
        "rfs(2,3,4)", "mesh(3,4,bw=[10,30]GB/s)"}) {
    const Topology topology = Parse(expression);
    RouterOptions options;
    for (const int32_t max_paths : {0, 2}) {
      options.max_paths = max_paths;
      const Routed alike = MustRoute("pmcf", topology, options);
      ExpectDisjoint(topology, alike.routing);
      EXPECT_LE(RoutingRate(topology, alike.routing), *alike.paths_upper);
      EXPECT_LE(RoutingRate(topology, alike.routing), *alike.f_upper);
      if (max_paths == 0) {
        EXPECT_GE(RoutingRate(topology, alike.routing), *alike.f_upper * Rational(97, 100))
            << expression;
      }
    }
    options.demand = RandomDemand(random, topology.num_ranks());
    ExpectDisjoint(topology, MustRoute("pmcf", topology, options).routing);
  }
}

TEST(Routers, HaveAnAnswerWhenTheTimeIsOver) {
  const Topology topology = Parse("genkautz(4,40)");
  for (const char* name : {"pmcf", "mcf-extp", "ilp-disjoint", "ilp-shortest"}) {
    const Routed routed = MustRoute(name, topology, {.max_seconds = 1e-9});
    EXPECT_GE(routed.routing.num_paths(), 40 * 39);
    if (routed.paths_upper) {
      EXPECT_LE(RoutingRate(topology, routed.routing), *routed.paths_upper) << name;
    }
  }
}

// --- Figure 8 of [alltoall-mcf] and punctured networks

TEST(RoutersSlow, ExtractionWithinOnePercentDisjointWithinThree) {
  std::vector<std::string> networks;
  for (const int32_t ranks : {16, 30, 50, 100, 150, 200})
    networks.push_back("genkautz(4," + std::to_string(ranks) + ")");
  networks.emplace_back("genkautz(8,81)");
  for (const int32_t seed : {1, 2, 3})
    for (const char* torus : {"torus(3,3,3),links=3", "torus(8,8),links=5"})
      networks.push_back("without(" + std::string(torus) + ",seed=" + std::to_string(seed) + ")");
  for (const std::string& expression : networks) {
    const Topology topology = Parse(expression);
    const Routed extp = MustRoute("mcf-extp", topology, {.gap = 1e-3});
    EXPECT_GE(RoutingRate(topology, extp.routing), *extp.f_upper * Rational(99, 100)) << expression;
    const Routed pmcf = MustRoute("pmcf", topology, {.gap = 2e-3});
    EXPECT_GE(RoutingRate(topology, pmcf.routing), *extp.f_upper * Rational(97, 100)) << expression;
    // The baselines stay behind, as in the figure.
    EXPECT_LT(RoutingRate(topology, MustRoute("sssp", topology).routing),
              RoutingRate(topology, pmcf.routing));
    EXPECT_LT(RoutingRate(topology, MustRoute("ewsp", topology).routing),
              RoutingRate(topology, pmcf.routing));
  }
}

// More shortest paths than are worth listing: the same loads from fewer.
TEST(RoutersSlow, EqualWeightOnALargeTorus) {
  const Topology topology = Parse("torus(16,16)");
  const Routing routing = MustRoute("ewsp", topology).routing;
  const Rational rate = RoutingRate(topology, routing);
  EXPECT_LE(rate, Rational(1, 512));
  EXPECT_GE(rate, Rational(1, 512) * Rational(999'999, 1'000'000));
  EXPECT_LT(routing.num_paths(), 10 * 256 * 255);
}

TEST(Routers, RefuseBadInput) {
  const Router* router = FindRouter("sssp");
  const Topology ring = Parse("ring(3)");
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
  // Before anything is started.
  const Result<Routed> huge = RunRouter(*router, Parse("uniring(1,200000)"), {});
  EXPECT_EQ(huge.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(huge.error().message, HasSubstr("a routing of 200000 ranks needs"));
}

// --- Paths of a flow --------------------------------------------------------------------------

TEST(PathsOfFlow, ReachExactlyTheRateOfTheFlow) {
  for (const char* expression :
       {"ring(5)", "bipartite(3)", "uniring(3,4)", "genkautz(4,30)", "torus(3,3,3)", "switch(5)",
        "without(torus(4,4),links=2,seed=3)", "torus(2,4,bw=[10,30]GB/s)", "dgx1"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
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
  const Topology topology = Parse("genkautz(2,8)");
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
  const Topology topology = Parse("genkautz(2,8)");
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
  const Topology topology = Parse("genkautz(2,8)");
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

// --- Host limits: hardware forwards, so that they hold for what begins or ends at a rank --------

TEST(RoutersWithHosts, AHostOfLessThanALinkIsTheLimit) {
  // 26 blocks leave each host of 20 Gbit/s over links of 25: 20 / 25 / 26. The links allow 1/9.
  const std::string torus = "torus(3,3,3,bw=25Gbit/s";
  const Topology limited = Parse(torus + ",host_bw=20Gbit/s)");
  EXPECT_EQ(RateOf("mcf-extp", torus + ")"), Rational(1, 9));
  for (const Router& router : Routers()) {
    if (router.on_request_only) continue;
    const Routed routed = MustRoute(router.name, limited);
    EXPECT_EQ(RoutingRate(limited, routed.routing), Rational(2, 65)) << router.name;
    for (const auto& upper : {routed.f_upper, routed.paths_upper})
      EXPECT_EQ(upper.value_or(Rational(2, 65)), Rational(2, 65)) << router.name;
  }
  // What passes by does not count: with a host of all six links nothing is lost.
  EXPECT_EQ(RateOf("mcf-extp", torus + ",host_bw=150Gbit/s)"), Rational(1, 9));
}

// About half of the ranks have a host limit.
Topology RandomWithHosts(Random& random) {
  const auto ranks = static_cast<int32_t>(3 + random.Below(4));
  const auto switches = static_cast<int32_t>(random.Below(3));
  const Topology network = RandomNetwork(random, ranks, switches, 4);
  Topology::Builder builder(ranks, switches);
  for (const LinkId link : network.Links())
    builder.AddLink(network.tail(link), network.head(link), network.spec(link));
  const auto limit = [&random] { return static_cast<int64_t>(1 + random.Below(60)) * 100'000'000; };
  builder.SetHostBandwidth(NodeId{0}, limit());
  for (int32_t rank = 1; rank < ranks; ++rank)
    if (random.Below(2) == 0) builder.SetHostBandwidth(NodeId{rank}, limit());
  return *std::move(builder).Build();
}

// The oracle: the flow of the network that has the limits as links.
TEST(RoutersWithHosts, NoRateBeatsTheFlowThroughTheHosts) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomWithHosts(random);
    std::vector<int64_t> demand;
    if (seed % 3 == 0)
      for (int32_t i = 0; i < topology.num_ranks() * topology.num_ranks(); ++i)
        demand.push_back(static_cast<int64_t>(random.Below(4)) + (i == 1 ? 1 : 0));
    const Topology explicit_hosts = NicForwarding(topology).value();
    const ConcurrentFlow flow = MustSolve(explicit_hosts, {.gap = 1e-4, .demand = demand});
    const Rational unit(explicit_hosts.min_bandwidth(), topology.min_bandwidth());
    for (const Router& router : Routers()) {
      if (router.on_request_only || router.name == "dor") continue;
      const Routed routed = MustRoute(router.name, topology, {.demand = demand});
      const Rational rate = RoutingRate(topology, routed.routing);
      EXPECT_LE(rate, flow.f_upper * unit) << router.name;
      if (routed.f_upper) {
        EXPECT_GE(*routed.f_upper, flow.f_lower * unit) << router.name;
        EXPECT_LE(rate, *routed.f_upper) << router.name;
      }
      if (router.name.starts_with("mcf")) {
        EXPECT_GE(rate, flow.f_lower * unit * Rational(999, 1000)) << router.name;
      }
    }
  }
}

}  // namespace
}  // namespace tutti

// Routings of all-to-all within groups of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "support/build.h"
#include "support/parse.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/flow/automorphisms.h"
#include "tutti/flow/concurrent_flow_lp.h"
#include "tutti/flow/network.h"
#include "tutti/route/router.h"
#include "tutti/sched/group_text.h"
#include "tutti/sched/routing.h"
#include "tutti/store/routing_store.h"
#include "tutti/verify/routing.h"

namespace tutti::route_groups_test {
namespace {

using test_support::MustBuild;
using test_support::MustMake;
using test_support::Parse;

Collective AllToAll(const Topology& topology, std::string_view groups,
                    Others others = Others::kForward) {
  return MustMake(
      CollectiveKind::kAllToAll, topology.num_ranks(),
      {.groups = *ParseGroups(groups, topology, topology.num_ranks()), .others = others});
}

Result<Routed> Route(std::string_view router, const Topology& topology,
                     const Collective& collective) {
  return RunRouterOfGroups(*FindRouter(router), topology, collective, {});
}

// --- Worked example: two groups that cross one cable

TEST(RoutingGroupsTest, TwoPairsShareACable) {
  const Topology line = Parse("mesh(4,bw=1GB/s)");
  // 0 <-> 2 and 1 <-> 3: both cross the cable between 1 and 2, each with half of it.
  const Collective both = AllToAll(line, "0,2;1,3");
  const Result<Routed> routed = Route("mcf", line, both);
  ASSERT_TRUE(routed.has_value()) << routed.error().message;
  EXPECT_EQ(RoutingRate(line, routed->routing), Rational(1, 2));
  EXPECT_NEAR(routed->f_upper->ToDouble(), 0.5, 1e-4);
  EXPECT_EQ(CheckRouting(line, routed->routing).rate, Rational(1, 2));
  EXPECT_EQ(*BoundsOf(line, both)->f_upper, Rational(1, 2));
  EXPECT_EQ(*BoundsOf(line, AllToAll(line, "0,2"))->f_upper, Rational(1));
}

TEST(RoutingGroupsTest, FilesKeepTheGroupsAndNotTheirDemand) {
  const Topology torus = Parse("torus(3,3)");
  const Collective groups = AllToAll(torus, "0-3;5,7,8");
  const Result<Routed> routed = Route("ewsp", torus, groups);
  ASSERT_TRUE(routed.has_value()) << routed.error().message;
  EXPECT_EQ(*CollectiveOf(routed->routing), groups);
  const std::string json = *RoutingToJson(torus, routed->routing),
                    binary = *RoutingToBinary(torus, routed->routing);
  EXPECT_EQ(json.find("\"demand\""), std::string::npos);
  const Result<RoutingFile> of_json = RoutingFromJson(json),
                            of_binary = RoutingFromBinary(std::as_bytes(std::span(binary)));
  ASSERT_TRUE(of_json.has_value()) << of_json.error().message;
  ASSERT_TRUE(of_binary.has_value()) << of_binary.error().message;
  EXPECT_EQ(of_json->routing, routed->routing);
  EXPECT_EQ(of_binary->routing, routed->routing);
}

TEST(RoutingGroupsTest, TheJudgeComparesDemandAndGroups) {
  const Topology torus = Parse("torus(3,3)");
  Routing routing = Route("ewsp", torus, AllToAll(torus, "0-3"))->routing;
  EXPECT_TRUE(CheckRouting(torus, routing).verified());
  routing.groups[0][3] = NodeId{4};
  const RoutingReport report = CheckRouting(torus, routing);
  ASSERT_FALSE(report.verified());
  EXPECT_NE(report.violations.front().message.find("the groups make it"), std::string::npos)
      << report.violations.front().message;
  EXPECT_FALSE(RoutingToJson(torus, routing).has_value());
  routing.groups[0] = {NodeId{0}};
  EXPECT_FALSE(CheckRouting(torus, routing).verified());
}

// --- Properties over seeds, with the linear program on the whole network as oracle

Topology RandomNetwork(std::mt19937& rng) {
  const auto num_ranks = static_cast<int32_t>(4 + rng() % 5);
  Topology::Builder builder(num_ranks);
  const auto spec = [&rng] {
    return LinkSpec{.bandwidth = 1'000'000'000 * static_cast<int64_t>(1 + rng() % 3)};
  };
  for (int32_t rank = 0; rank < num_ranks; ++rank)
    builder.AddLink(NodeId{rank}, NodeId{(rank + 1) % num_ranks}, spec());
  for (auto more = 2 + rng() % 10; more > 0; --more) {
    const auto tail = static_cast<int32_t>(rng() % static_cast<uint32_t>(num_ranks));
    const auto hop = static_cast<int32_t>(1 + rng() % static_cast<uint32_t>(num_ranks - 1));
    builder.AddLink(NodeId{tail}, NodeId{(tail + hop) % num_ranks}, spec());
  }
  return MustBuild(std::move(builder));
}

RankGroups RandomGroups(std::mt19937& rng, int32_t num_ranks) {
  RankGroups groups(1 + rng() % 3);
  for (std::vector<NodeId>& group : groups) {
    for (int32_t rank = 0; rank < num_ranks; ++rank) group.push_back(NodeId{rank});
    std::shuffle(group.begin(), group.end(), rng);
    group.resize(2 + rng() % static_cast<uint32_t>(num_ranks - 1));
  }
  return groups;
}

TEST(RoutingGroupsProperty, TheRateIsThatOfTheLinearProgramOnTheWholeNetwork) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Topology topology = RandomNetwork(rng);
    const int64_t n = topology.num_ranks();
    const Collective collective = MustMake(CollectiveKind::kAllToAll, topology.num_ranks(),
                                           {.groups = RandomGroups(rng, topology.num_ranks())});
    const Result<double> f =
        SolveConcurrentFlowProgram(topology, FlowProgram::kPerSource, DemandOfGroups(collective));
    ASSERT_TRUE(f.has_value()) << f.error().message;
    const double best =
        *f * static_cast<double>(n * (n - 1)) / static_cast<double>(collective.num_pairs());
    const Result<Routed> routed = Route("mcf-extp", topology, collective);
    ASSERT_TRUE(routed.has_value()) << routed.error().message;
    const RoutingReport report = CheckRouting(topology, routed->routing);
    EXPECT_TRUE(report.verified()) << report.violations.front().message;
    EXPECT_EQ(report.rate, RoutingRate(topology, routed->routing));
    EXPECT_NEAR(report.rate.ToDouble(), best, 2e-4 * best);
    EXPECT_GE(routed->f_upper->ToDouble(), best * (1 - 1e-9));
    EXPECT_LE(routed->f_upper->ToDouble(), best * (1 + 2e-4));
    const Result<ProvenBounds> bounds = ProveBounds(topology, collective);
    ASSERT_TRUE(bounds.has_value()) << bounds.error().message;
    EXPECT_GE(bounds->bounds.f_upper->ToDouble(), best * (1 - 1e-9));
    EXPECT_LE(bounds->bounds.f_upper->ToDouble(), best * (1 + 1e-2));
    EXPECT_LE(*bounds->f_lower, *bounds->bounds.f_upper);
  }
}

TEST(RoutingGroupsProperty, EveryRouterRoutesGroups) {
  const Topology torus = Parse("torus(3,4)");
  for (const Router& router : Routers()) {
    if (router.on_request_only) continue;
    SCOPED_TRACE(std::string(router.name));
    for (const char* groups : {"0-4", "blocks=3", "0-3;2,5,7", "every=2"}) {
      const Collective collective = AllToAll(torus, groups);
      const Result<Routed> routed = Route(router.name, torus, collective);
      if (!routed) {  // only who needs the whole grid
        EXPECT_EQ(routed.error().code, ErrorCode::kInfeasible) << routed.error().message;
        EXPECT_EQ(router.name, "dor");
        continue;
      }
      EXPECT_TRUE(CheckRouting(torus, routed->routing).verified());
      EXPECT_LE(RoutingRate(torus, routed->routing), *BoundsOf(torus, collective)->f_upper);
    }
  }
}

// --- Symmetry

TEST(RoutingGroupsTest, TranslationsThatKeepTheGroupsAreUsed) {
  const Topology torus = Parse("torus(5,6)");
  const FlowNetwork network(torus);
  constexpr int64_t kBudget = 20'000'000;
  const auto order = [&](std::string_view groups) {
    const Collective collective = AllToAll(torus, groups);
    return FindFreeGroup(torus, network, DemandOfGroups(collective), kBudget).elements.size();
  };
  const size_t all = FindFreeGroup(torus, network, {}, kBudget).elements.size();
  EXPECT_GT(all, 1U);
  EXPECT_EQ(order("blocks=30"), 30U);
  EXPECT_EQ(order("blocks=6"), 30U);  // rows go to rows
  EXPECT_EQ(order("0-5"), 6U);        // along the row only
  EXPECT_EQ(order("0-3;4-14"), 1U);
}

TEST(RoutingGroupsProperty, SymmetryChangesNoLimit) {
  const Topology torus = Parse("torus(4,4)");
  for (const char* groups : {"blocks=4", "every=4", "every=2", "axis=0", "blocks=8"}) {
    const Collective collective = AllToAll(torus, groups);
    ConcurrentFlowOptions options;
    options.demand = collective.Joined().demand();
    options.gap = 1e-4;
    const Result<ConcurrentFlow> with = SolveConcurrentFlow(torus, options);
    options.symmetry = false;
    const Result<ConcurrentFlow> without = SolveConcurrentFlow(torus, options);
    ASSERT_TRUE(with.has_value() && without.has_value());
    EXPECT_TRUE(CheckConcurrentFlow(torus, *with).has_value()) << groups;
    EXPECT_LE(with->f_lower, without->f_upper) << groups;
    EXPECT_LE(without->f_lower, with->f_upper) << groups;
  }
}

}  // namespace
}  // namespace tutti::route_groups_test

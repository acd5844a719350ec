// The parts that routers are made of: sets of paths, weights over them, flows without cycles.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "acyclic.h"
#include "path_sets.h"
#include "path_weights.h"
#include "tutti/flow/network.h"
#include "tutti/graph/distance.h"
#include "tutti/graph/max_flow.h"
#include "tutti/sched/routing_chunks.h"
#include "tutti/verify/routing.h"
#include "unit/flow/concurrent_flow_testing.h"

namespace tutti {
namespace {

const std::vector<int64_t> kAlike;

// The paths of a pair as lists of links.
std::set<std::vector<int32_t>> PathsOf(const Routing& paths, NodeId source, NodeId destination) {
  std::set<std::vector<int32_t>> result;
  for (const PathId path : paths.Paths(source, destination)) {
    std::vector<int32_t> links;
    for (const LinkId link : paths.Hops(path)) links.push_back(link.value);
    result.insert(links);
  }
  return result;
}

// Every simple path of at most so many hops, by plain recursion.
std::set<std::vector<int32_t>> AllPaths(const Topology& topology, NodeId source, NodeId destination,
                                        int32_t most) {
  std::set<std::vector<int32_t>> result;
  std::vector<int32_t> links;
  std::vector<bool> seen(static_cast<size_t>(topology.num_nodes()), false);
  const std::function<void(NodeId)> walk = [&](NodeId at) {
    if (at == destination) {
      result.insert(links);
      return;
    }
    if (static_cast<int32_t>(links.size()) == most) return;
    seen[at.index()] = true;
    for (const LinkId link : topology.OutLinks(at)) {
      if (seen[topology.head(link).index()]) continue;
      links.push_back(link.value);
      walk(topology.head(link));
      links.pop_back();
    }
    seen[at.index()] = false;
  };
  walk(source);
  return result;
}

TEST(PathSets, ShortestAndBoundedAreAllThereAre) {
  Random random(11);
  for (int seed = 0; seed < 40; ++seed) {
    const auto ranks = static_cast<int32_t>(2 + random.Below(6));
    const Topology topology =
        RandomNetwork(random, ranks, static_cast<int32_t>(random.Below(3)), 3);
    const DemandTable demand(ranks, kAlike);
    for (const int32_t extra : {0, 1, 3}) {
      const PathSet set = extra == 0 ? PathSet::kShortest : PathSet::kBounded;
      const Routing paths = *ListPaths(topology, demand, set, extra);
      for (const NodeId s : topology.Ranks())
        for (const NodeId d : topology.Ranks()) {
          if (s == d) continue;
          const int32_t fewest = DistancesFrom(topology.graph(), s)[d.index()];
          EXPECT_EQ(PathsOf(paths, s, d), AllPaths(topology, s, d, fewest + extra));
          size_t before = 0;  // the shorter first
          for (const PathId path : paths.Paths(s, d)) {
            EXPECT_GE(paths.Hops(path).size(), before);
            before = paths.Hops(path).size();
          }
        }
    }
  }
}

TEST(PathSets, OnePathAPairAfterTheDeadline) {
  const Topology topology = Parse("torus(3,4)");
  const DemandTable demand(12, kAlike);
  for (const PathSet set : {PathSet::kDisjoint, PathSet::kShortest, PathSet::kBounded}) {
    const Routing all = *ListPaths(topology, demand, set, 1);
    const Routing first = *ListPaths(topology, demand, set, 1, Deadline(1e-9));
    for (const NodeId s : topology.Ranks())
      for (const NodeId d : topology.Ranks()) {
        if (s == d) continue;
        ASSERT_EQ(first.Paths(s, d).size(), 1);
        const PathId only = *first.Paths(s, d).begin();
        const PathId shortest = *all.Paths(s, d).begin();  // the shorter first
        EXPECT_EQ(first.Hops(only).size(), all.Hops(shortest).size());
      }
  }
}

// The least total of hops of `count` disjoint paths among all simple paths.
size_t FewestHops(const std::vector<std::vector<int32_t>>& all, size_t first, int32_t count,
                  std::set<int32_t>& used) {
  if (count == 0) return 0;
  size_t best = 1000;
  for (size_t i = first; i < all.size(); ++i) {
    if (std::any_of(all[i].begin(), all[i].end(), [&](int32_t l) { return used.count(l) > 0; }))
      continue;
    used.insert(all[i].begin(), all[i].end());
    best = std::min(best, all[i].size() + FewestHops(all, i + 1, count - 1, used));
    for (const int32_t link : all[i]) used.erase(link);
  }
  return best;
}

TEST(PathSets, DisjointAreAsManyAsMaxFlowOfTheFewestHops) {
  Random random(5);
  for (int seed = 0; seed < 40; ++seed) {
    const auto ranks = static_cast<int32_t>(2 + random.Below(5));
    const Topology topology =
        RandomNetwork(random, ranks, static_cast<int32_t>(random.Below(2)), 3);
    std::vector<MaxFlow<int64_t>::Arc> arcs;
    for (const LinkId link : topology.Links())
      arcs.push_back({topology.tail(link), topology.head(link), 1});
    const Routing paths = *ListPaths(topology, DemandTable(ranks, kAlike), PathSet::kDisjoint, 0);
    for (const NodeId s : topology.Ranks())
      for (const NodeId d : topology.Ranks()) {
        if (s == d) continue;
        MaxFlow<int64_t> flow(topology.num_nodes(), arcs);
        flow.SetUnlimitedSupply(s);
        const auto of_pair = PathsOf(paths, s, d);
        EXPECT_EQ(static_cast<int64_t>(of_pair.size()), flow.Run(d));
        std::set<int32_t> used;
        size_t hops = 0;
        for (const auto& links : of_pair) {
          used.insert(links.begin(), links.end());
          hops += links.size();
        }
        EXPECT_EQ(used.size(), hops) << "a link is shared";
        const auto all = AllPaths(topology, s, d, topology.num_nodes());
        std::set<int32_t> none;
        EXPECT_EQ(hops, FewestHops({all.begin(), all.end()}, 0,
                                   static_cast<int32_t>(of_pair.size()), none));
      }
  }
}

Rational RateOf(const Topology& topology, const std::vector<int64_t>& demand, Routing routing) {
  routing.topology_fingerprint = topology.Fingerprint();
  routing.demand = demand;
  const RoutingReport report = CheckRouting(topology, routing);
  EXPECT_TRUE(report.verified()) << report.violations.front().message;
  return report.rate;
}

TEST(PathWeights, PassesReachWhatTheLinearProgramDoes) {
  Random random(2);
  for (int seed = 0; seed < 30; ++seed) {
    const auto ranks = static_cast<int32_t>(2 + random.Below(8));
    const Topology topology =
        RandomNetwork(random, ranks, static_cast<int32_t>(random.Below(3)), 1 + random.Below(5));
    std::vector<int64_t> matrix;
    if (seed % 2 == 1) matrix = RandomDemand(random, ranks);
    const DemandTable demand(ranks, matrix);
    const Routing paths =
        *ListPaths(topology, demand, seed % 3 == 0 ? PathSet::kDisjoint : PathSet::kBounded, 1);
    PathWeightOptions program, passes;
    passes.gap = 1e-3;
    passes.max_program_paths = 0;
    const WeightedPaths exact = *WeighPaths(topology, demand, paths, program);
    const WeightedPaths close = *WeighPaths(topology, demand, paths, passes);
    const Rational best = RateOf(topology, matrix, exact.routing);
    const Rational rate = RateOf(topology, matrix, close.routing);
    EXPECT_LE(best, exact.upper);
    EXPECT_GE(best, exact.upper * Rational(999'999, 1'000'000));
    EXPECT_LE(best, close.upper);
    EXPECT_LE(rate, exact.upper);
    EXPECT_GE(rate, close.upper * Rational(9989, 10'000));
  }
}

TEST(WithoutCycles, KeepsWhatArrivesAndTakesTheCirclesAway) {
  // A ring of four with a chord: 0 sends 2 to 2, and 3 go round 1 -> 2 -> 3 -> 1.
  Topology::Builder builder(4);
  for (const auto& [tail, head] : {std::pair(0, 1), {1, 2}, {2, 3}, {3, 0}, {3, 1}})
    builder.AddLink(NodeId{tail}, NodeId{head}, {});
  const Topology topology = *std::move(builder).Build();
  const FlowNetwork network(topology);  // by head: 3 -> 0, 0 -> 1, 3 -> 1, 1 -> 2, 2 -> 3
  const std::vector<BundleFlow> flow = WithoutCycles(network, {0, 2, 3, 5, 3});
  EXPECT_THAT(flow, testing::ElementsAre(BundleFlow{1, 2}, BundleFlow{3, 2}));
}

}  // namespace
}  // namespace tutti

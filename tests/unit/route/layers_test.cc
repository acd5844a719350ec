#include "tutti/route/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <queue>

#include "layers/acyclic_dependencies.h"
#include "support/parse.h"
#include "tutti/base/random.h"
#include "tutti/route/router.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/layers.h"
#include "tutti/verify/routing.h"

namespace tutti {
namespace {

using test_support::Parse;
using ::testing::HasSubstr;

// One shortest path a pair, drawn among all of them.
Routing ShortestPaths(const Topology& topology, uint64_t seed) {
  Random random(seed);
  const Digraph& graph = topology.graph();
  RoutingBuilder builder(topology.num_ranks(), 1);
  for (const NodeId source : topology.Ranks())
    for (const NodeId destination : topology.Ranks()) {
      if (source != destination) {
        // Distances to the destination, then any way downhill.
        std::vector<int32_t> distance(static_cast<size_t>(graph.num_nodes()), -1);
        std::queue<NodeId> queue;
        distance[destination.index()] = 0;
        queue.push(destination);
        while (!queue.empty()) {
          const NodeId node = queue.front();
          queue.pop();
          for (const LinkId link : graph.InLinks(node))
            if (distance[graph.tail(link).index()] < 0) {
              distance[graph.tail(link).index()] = distance[node.index()] + 1;
              queue.push(graph.tail(link));
            }
        }
        std::vector<LinkId> path;
        for (NodeId node = source; node != destination; node = graph.head(path.back())) {
          std::vector<LinkId> downhill;
          for (const LinkId link : graph.OutLinks(node))
            if (distance[graph.head(link).index()] == distance[node.index()] - 1)
              downhill.push_back(link);
          path.push_back(downhill[random.Below(downhill.size())]);
        }
        builder.AddPath(path, 1);
      }
      builder.EndPair();
    }
  Routing routing = std::move(builder).Finish();
  routing.topology_fingerprint = topology.Fingerprint();
  return routing;
}

// On a one-way ring of three, 0->1->2, 1->2->0 and 2->0->1 wait for each other in one layer, and
// any two of them do not.
TEST(Layers, OfAOneWayRingByHand) {
  const Topology ring = Parse("uniring(1,3)");
  for (const Layering& layering : Layerings()) {
    Routing routing = ShortestPaths(ring, 1);
    ASSERT_TRUE(AssignLayers(layering, ring, 2, routing)) << layering.name;
    EXPECT_EQ(routing.num_layers, 2) << layering.name;
    EXPECT_TRUE(CheckLayers(ring, routing)) << layering.name;
    const Status refused = AssignLayers(layering, ring, 1, routing);
    ASSERT_FALSE(refused) << layering.name;
    EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
    EXPECT_THAT(refused.error().message, HasSubstr("needs 2 layers for these paths, 1 are"));
  }
}

TEST(Layers, JudgeNamesTheCircle) {
  const Topology ring = Parse("uniring(1,3)");
  Routing routing = ShortestPaths(ring, 1);
  routing.layer.assign(static_cast<size_t>(routing.num_paths()), 0);
  routing.num_layers = 1;
  const Status circle = CheckLayers(ring, routing);
  ASSERT_FALSE(circle);
  EXPECT_EQ(circle.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(circle.error().message, HasSubstr("layer 0"));
  for (const char* link : {"0->1", "1->2", "2->0"})
    EXPECT_THAT(circle.error().message, HasSubstr(link));

  routing.layer.back() = 1;
  EXPECT_THAT(CheckLayers(ring, routing).error().message, HasSubstr("is in layer 1 of 1"));
  routing.layer.pop_back();
  EXPECT_THAT(CheckLayers(ring, routing).error().message, HasSubstr("6 paths have 5 layers"));
}

TEST(Layers, EveryLayeringIsFreeOfDeadlockOnAnyNetwork) {
  for (const char* name :
       {"mesh(4,4)", "torus(4,4)", "genkautz(4,24)", "kautz(2,3)", "hypercube(4)", "bipartite(4)",
        "without(torus(5,5),links=4,seed=3)", "rfs(2,3,2)", "dgx1", "uniring(2,5)"}) {
    const Topology topology = Parse(name);
    for (uint64_t seed = 0; seed < 5; ++seed)
      for (const Layering& layering : Layerings()) {
        Routing routing = ShortestPaths(topology, seed);
        ASSERT_TRUE(AssignLayers(layering, topology, 16, routing)) << name << layering.name;
        const Status judged = CheckLayers(topology, routing);
        EXPECT_TRUE(judged) << name << ", " << layering.name << ": " << judged.error().message;
        // Layers are used from 0 on without holes.
        std::vector<bool> used(static_cast<size_t>(routing.num_layers));
        for (const int16_t layer : routing.layer) used[static_cast<size_t>(layer)] = true;
        EXPECT_TRUE(std::all_of(used.begin(), used.end(), [](bool u) { return u; })) << name;
      }
  }
}

// Dimension order on a mesh needs one layer: shortest paths on a line, and between two ranks.
TEST(Layers, OneSufficesWhereNothingCanCircle) {
  for (const char* name : {"mesh(7)", "complete(5)", "mesh(2)"}) {
    const Topology topology = Parse(name);
    for (const Layering& layering : Layerings()) {
      Routing routing = ShortestPaths(topology, 1);
      ASSERT_TRUE(AssignLayers(layering, topology, 1, routing)) << name;
      EXPECT_EQ(routing.num_layers, 1) << name;
    }
  }
}

TEST(Layers, ErrorsSayWhatIsWrong) {
  const Topology ring = Parse("uniring(1,4)");
  Routing routing = ShortestPaths(ring, 1);
  routing.topology_fingerprint ^= 1;
  EXPECT_THAT(AssignLayers(Layerings()[0], ring, 1, routing).error().message,
              HasSubstr("another network"));
  EXPECT_THAT(FindLayering("up").error().message, HasSubstr("accepted are lash-sequential, lash"));
}

// All of them come within 2 % of the best rate in two layers. One layer may be too few.
TEST(RouteWithinLayers, TwoLayersKeepTheRate) {
  for (const char* name : {"torus(4,4)", "torus(3,3,3)", "genkautz(4,24)", "hypercube(4)",
                           "without(torus(5,5),links=4,seed=3)"}) {
    const Topology topology = Parse(name);
    const Routed best = *RunRouter(*FindRouter("mcf"), topology, {});
    for (int32_t layers = 1; layers <= 3; ++layers) {
      const Result<Routing> routing = RouteWithinLayers(topology, best.routing, layers, 1e-3);
      if (layers == 1 && !routing) {
        EXPECT_EQ(routing.error().code, ErrorCode::kInfeasible) << routing.error().message;
        continue;
      }
      ASSERT_TRUE(routing) << name << ": " << routing.error().message;
      EXPECT_LE(routing->num_layers, layers);
      EXPECT_TRUE(CheckRouting(topology, *routing).verified()) << name;
      const Status judged = CheckLayers(topology, *routing);
      EXPECT_TRUE(judged) << name << ": " << judged.error().message;
      const Rational rate = RoutingRate(topology, *routing);
      EXPECT_LE(rate, *best.f_upper) << name;
      if (layers > 1) {
        EXPECT_GE(rate, *best.f_upper * Rational(98, 100)) << name << " in " << layers;
      }
    }
  }
}

// Pairs without a path come first in the next attempt: on this sparse network the first attempt
// leaves some.
TEST(RouteWithinLayers, TriesAgainWhereAPairIsLeftOver) {
  const Topology kautz = Parse("kautz(2,3)");
  const Routed best = *RunRouter(*FindRouter("mcf"), kautz, {});
  const Result<Routing> routing = RouteWithinLayers(kautz, best.routing, 2, 1e-3);
  ASSERT_TRUE(routing) << routing.error().message;
  EXPECT_EQ(routing->num_layers, 2);
  EXPECT_TRUE(CheckLayers(kautz, *routing));
  EXPECT_TRUE(CheckRouting(kautz, *routing).verified());
}

TEST(RouteWithinLayers, NamesThePairThatFindsNoWay) {
  const Topology ring = Parse("uniring(1,3)");
  const Result<Routing> routing = RouteWithinLayers(ring, ShortestPaths(ring, 1), 1, 1e-3);
  ASSERT_FALSE(routing);
  EXPECT_EQ(routing.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(routing.error().message, HasSubstr("found no way from"));
}

// Against a full search of cycles, path by path.
TEST(AcyclicDependencies, RefusesExactlyWhatClosesACycle) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Topology topology = Parse(seed % 2 == 0 ? "torus(3,4)" : "genkautz(3,11)");
    const Routing routing = ShortestPaths(topology, seed);
    AcyclicDependencies layer(topology.graph());
    // What the judge says of the accepted paths and one more.
    Routing trial = routing;
    trial.num_layers = 2;
    trial.layer.assign(static_cast<size_t>(trial.num_paths()), 1);
    std::vector<int32_t> order;
    for (int32_t path = 0; path < routing.num_paths(); ++path) order.push_back(path);
    Random random(seed);
    for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.Below(i + 1)]);
    for (const int32_t index : order) {
      const PathId path{index};
      const bool admitted = layer.Admit(routing.Hops(path));
      trial.layer[path.index()] = 0;
      // Layer 1 holds the rest and may circle: only layer 0 is asked about.
      Routing only = trial;
      for (size_t p = 0; p < only.layer.size(); ++p)
        if (only.layer[p] == 1) only.layer[p] = static_cast<int16_t>(p + 1);
      only.num_layers = static_cast<int32_t>(only.layer.size()) + 1;
      EXPECT_EQ(admitted, CheckLayers(topology, only).has_value());
      if (!admitted) trial.layer[path.index()] = 1;
    }
    for (const PathId path : IdRange<PathId>(0, static_cast<int32_t>(routing.num_paths()))) {
      const std::span<const LinkId> hops = routing.Hops(path);
      for (size_t i = 1; i < hops.size() && trial.layer[path.index()] == 0; ++i)
        EXPECT_LT(layer.position(hops[i - 1]), layer.position(hops[i]));
    }
  }
}

}  // namespace
}  // namespace tutti

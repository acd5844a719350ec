#include "tutti/graph/isomorphism.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "tutti/graph/automorphism.h"
#include "unit/graph/graphs.h"

namespace tutti {
namespace {

using Outcome = IsomorphismSearch::Outcome;

Outcome Search(const Digraph& from, const Digraph& to, const GraphColors& a = {},
               const GraphColors& b = {}) {
  const IsomorphismSearch search = FindIsomorphism(from, to, a, b);
  EXPECT_EQ(search.outcome == Outcome::kFound, IsIsomorphism(from, to, search.isomorphism, a, b));
  return search.outcome;
}

// Number of links between every two nodes.
std::map<std::pair<int32_t, int32_t>, int> Matrix(const Digraph& graph) {
  std::map<std::pair<int32_t, int32_t>, int> matrix;
  for (LinkId link : graph.Links()) ++matrix[{graph.tail(link).value, graph.head(link).value}];
  return matrix;
}

// All permutations, for graphs of few nodes. Calls visit on those that are isomorphisms.
template <class Visit>
void ForEachIsomorphism(const Digraph& from, const Digraph& to, const Visit& visit) {
  std::vector<int32_t> permutation(static_cast<size_t>(from.num_nodes()));
  std::iota(permutation.begin(), permutation.end(), 0);
  const auto wanted = Matrix(to);
  do {
    if (Matrix(Relabel(from, permutation)) == wanted) visit(permutation);
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

TEST(Isomorphism, OfTwoTrianglesByHand) {
  const Digraph a = MakeGraph(3, {{0, 1}, {1, 2}, {2, 0}});
  const Digraph b = MakeGraph(3, {{0, 2}, {2, 1}, {1, 0}});
  const IsomorphismSearch search = FindIsomorphism(a, b);
  ASSERT_EQ(search.outcome, Outcome::kFound);
  EXPECT_TRUE(IsIsomorphism(a, b, search.isomorphism));
  EXPECT_GT(search.work, 0);
}

TEST(Isomorphism, TellsApartWhatRefinementCannot) {
  // Both are 2-regular undirected; one is connected.
  const Digraph ring = MakeCirculant(6, {1, 5});
  const Digraph triangles = MakeGraph(6, {{0, 1},
                                          {1, 0},
                                          {1, 2},
                                          {2, 1},
                                          {2, 0},
                                          {0, 2},
                                          {3, 4},
                                          {4, 3},
                                          {4, 5},
                                          {5, 4},
                                          {5, 3},
                                          {3, 5}});
  EXPECT_EQ(Search(ring, triangles), Outcome::kNone);
  // The prism and K_{3,3} are 3-regular on 6 nodes.
  EXPECT_EQ(Search(MakeCirculant(6, {2, 4, 3}), MakeCirculant(6, {1, 3, 5})), Outcome::kNone);
}

TEST(Isomorphism, CountsParallelLinks) {
  const Digraph a = MakeGraph(3, {{0, 1}, {0, 1}, {1, 2}, {2, 0}});
  const Digraph b = MakeGraph(3, {{0, 1}, {1, 2}, {1, 2}, {2, 0}});
  const Digraph c = MakeGraph(3, {{0, 1}, {1, 2}, {2, 0}, {0, 2}});
  EXPECT_EQ(Search(a, b), Outcome::kFound);
  EXPECT_EQ(Search(a, c), Outcome::kNone);
  EXPECT_EQ(Search(a, MakeGraph(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}})), Outcome::kNone);
}

TEST(Isomorphism, KeepsColours) {
  const Digraph ring = MakeCirculant(4, {1});
  EXPECT_EQ(Search(ring, ring, {{}, {7, 8, 7, 8}}, {{}, {8, 7, 8, 7}}), Outcome::kFound);
  EXPECT_EQ(Search(ring, ring, {{}, {7, 8, 7, 8}}, {{}, {7, 7, 8, 8}}), Outcome::kNone);
  EXPECT_EQ(Search(ring, ring, {{1, 0, 0, 0}, {}}, {{0, 0, 1, 0}, {}}), Outcome::kFound);
  EXPECT_EQ(Search(ring, ring, {{1, 0, 0, 0}, {}}, {{0, 0, 2, 0}, {}}), Outcome::kNone);
}

TEST(Isomorphism, OfNothingIsFound) { EXPECT_EQ(Search(Digraph(), Digraph()), Outcome::kFound); }

TEST(Isomorphism, GivesUpWhenTheBudgetEnds) {
  const Digraph a = MakeCirculant(60, {1, 7, 59, 53});
  const Digraph b = MakeCirculant(60, {1, 11, 59, 49});
  EXPECT_EQ(FindIsomorphism(a, b, {}, {}, 1).outcome, Outcome::kGaveUp);
}

TEST(IsomorphismChecker, RefusesSingleFaults) {
  const Digraph graph = MakeGraph(3, {{0, 1}, {0, 1}, {1, 2}, {2, 0}});
  const Isomorphism identity{{NodeId{0}, NodeId{1}, NodeId{2}},
                             {LinkId{0}, LinkId{1}, LinkId{2}, LinkId{3}}};
  EXPECT_TRUE(IsIsomorphism(graph, graph, identity));
  Isomorphism swapped = identity;
  std::swap(swapped.link_map[0], swapped.link_map[1]);
  EXPECT_TRUE(IsIsomorphism(graph, graph, swapped));
  EXPECT_FALSE(IsIsomorphism(graph, graph, swapped, {{}, {1, 2, 3, 3}}, {{}, {1, 2, 3, 3}}));
  Isomorphism bad = identity;
  bad.link_map[1] = LinkId{0};
  EXPECT_FALSE(IsIsomorphism(graph, graph, bad));
  bad = identity;
  std::swap(bad.link_map[2], bad.link_map[3]);
  EXPECT_FALSE(IsIsomorphism(graph, graph, bad));
  bad = identity;
  std::swap(bad.node_map[0], bad.node_map[1]);
  EXPECT_FALSE(IsIsomorphism(graph, graph, bad));
  bad = identity;
  bad.node_map.pop_back();
  EXPECT_FALSE(IsIsomorphism(graph, graph, bad));
  bad = identity;
  bad.node_map[2] = NodeId{7};
  EXPECT_FALSE(IsIsomorphism(graph, graph, bad));
}

TEST(IsomorphismProperty, RelabellingIsFound) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Digraph graph = RandomGraph(30, 70, seed);
    EXPECT_EQ(Search(graph, Relabel(graph, RandomPermutation(30, seed + 1000))), Outcome::kFound);
    const Digraph circulant = MakeCirculant(24, {1, 5, static_cast<int32_t>(seed % 20) + 2});
    EXPECT_EQ(Search(circulant, Relabel(circulant, RandomPermutation(24, seed))), Outcome::kFound);
  }
}

// Oracle: all permutations of up to 5 nodes.
TEST(IsomorphismProperty, AgreesWithAllPermutations) {
  int found = 0, none = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const auto nodes = static_cast<int32_t>(2 + seed % 4);
    const Digraph a = RandomGraph(nodes, nodes + 1, seed);
    const Digraph b = RandomGraph(nodes, nodes + 1, seed + 5000);
    bool exists = false;
    ForEachIsomorphism(a, b, [&](const auto&) { exists = true; });
    EXPECT_EQ(Search(a, b), exists ? Outcome::kFound : Outcome::kNone);
    ++(exists ? found : none);
  }
  EXPECT_GT(found, 10);
  EXPECT_GT(none, 10);
}

TEST(Automorphism, OrbitsByHand) {
  // A path 0 - 1 - 2: its ends are alike.
  const Digraph path = MakeGraph(3, {{0, 1}, {1, 0}, {1, 2}, {2, 1}});
  const NodeOrbits orbits = FindNodeOrbits(path);
  EXPECT_TRUE(orbits.proven);
  EXPECT_EQ(orbits.orbit, (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(orbits.num_orbits(), 2);
  ASSERT_EQ(orbits.generators.size(), 1u);
  EXPECT_TRUE(IsIsomorphism(path, path, orbits.generators[0]));
  EXPECT_EQ(IsVertexTransitive(path), Verdict::kNo);
}

TEST(Automorphism, CirculantsAreVertexTransitive) {
  for (int32_t nodes : {3, 8, 30, 101})
    for (int32_t step : {1, 2, 5})
      EXPECT_EQ(IsVertexTransitive(MakeCirculant(nodes, {1, step % (nodes - 1) + 1})),
                Verdict::kYes);
}

TEST(Automorphism, SaysUnknownWhenTheBudgetEnds) {
  const Digraph graph = MakeCirculant(50, {1, 7});
  EXPECT_EQ(IsVertexTransitive(graph, {}, 0), Verdict::kUnknown);
}

TEST(AutomorphismProperty, OrbitsAgreeWithAllPermutations) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto nodes = static_cast<int32_t>(2 + seed % 4);
    const Digraph graph = RandomGraph(nodes, static_cast<int32_t>(1 + seed % 9), seed);
    const NodeOrbits orbits = FindNodeOrbits(graph);
    EXPECT_TRUE(orbits.proven);
    std::vector<int32_t> smallest(static_cast<size_t>(nodes));
    std::iota(smallest.begin(), smallest.end(), 0);
    ForEachIsomorphism(graph, graph, [&](const std::vector<int32_t>& permutation) {
      for (size_t v = 0; v < smallest.size(); ++v)
        smallest[v] = std::min(smallest[v], permutation[v]);
    });
    for (NodeId node : graph.Nodes())
      EXPECT_EQ(orbits.representatives[static_cast<size_t>(orbits.orbit[node.index()])].value,
                smallest[node.index()]);
  }
}

TEST(AutomorphismProperty, GeneratorsJoinEveryOrbit) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Digraph graph = seed % 2 == 0 ? RandomGraph(40, 60, seed)
                                        : MakeCirculant(40, {1, static_cast<int32_t>(seed)});
    const NodeOrbits orbits = FindNodeOrbits(graph);
    for (const Isomorphism& generator : orbits.generators) {
      EXPECT_TRUE(IsIsomorphism(graph, graph, generator));
      for (NodeId node : graph.Nodes())
        EXPECT_EQ(orbits.orbit[node.index()],
                  orbits.orbit[generator.node_map[node.index()].index()]);
    }
  }
}

// A graph of more links than the first fingerprints look at, and a copy of it numbered anew.
TEST(AutomorphismProperty, CopiesOfANodeAreInOneOrbit) {
  constexpr int32_t kNodes = 600;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    const Digraph graph = RandomGraph(kNodes, 4 * kNodes, seed);
    Random random(seed);
    std::vector<int32_t> copy(kNodes);
    std::iota(copy.begin(), copy.end(), kNodes);
    for (int32_t v = kNodes; v-- > 1;)
      std::swap(copy[static_cast<size_t>(v)],
                copy[static_cast<size_t>(random.Below(static_cast<uint64_t>(v) + 1))]);
    std::vector<Digraph::Arc> arcs;
    for (LinkId link : graph.Links()) {
      arcs.emplace_back(graph.tail(link), graph.head(link));
      arcs.emplace_back(NodeId{copy[graph.tail(link).index()]},
                        NodeId{copy[graph.head(link).index()]});
    }
    const NodeOrbits orbits = FindNodeOrbits(Digraph(2 * kNodes, arcs));
    EXPECT_TRUE(orbits.proven);
    for (NodeId node : graph.Nodes())
      EXPECT_EQ(orbits.orbit[node.index()], orbits.orbit[static_cast<size_t>(copy[node.index()])]);
    EXPECT_GT(orbits.num_orbits(), kNodes / 2);
  }
}

}  // namespace
}  // namespace tutti

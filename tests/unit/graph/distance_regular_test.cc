#include "tutti/graph/distance_regular.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "graphs.h"
#include "tutti/base/parallel.h"
#include "tutti/graph/distance.h"

namespace tutti {
namespace {

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

Digraph Undirected(int32_t nodes, const Pairs& cables) {
  Pairs arcs = cables;
  for (const auto& cable : cables) arcs.emplace_back(cable.second, cable.first);
  return MakeGraph(nodes, arcs);
}

std::string ArrayText(const Digraph& graph) {
  const DistanceRegularity found = CheckDistanceRegular(graph);
  return found.array ? found.array->ToString() : "none";
}

// [direct-connect] Definition 17, word for word: |N_i(x) and N_j(y)| depends on i, j and d(x,y).
bool IsDistanceRegularByDefinition(const Digraph& graph) {
  std::vector<std::vector<int32_t>> hops;
  for (NodeId node : graph.Nodes()) hops.push_back(DistancesFrom(graph, node));
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> constant;
  const auto n = static_cast<size_t>(graph.num_nodes());
  for (size_t x = 0; x < n; ++x)
    for (size_t y = 0; y < n; ++y) {
      std::map<std::pair<int32_t, int32_t>, int32_t> common;
      for (int32_t i = 0; i < graph.num_nodes(); ++i)
        for (int32_t j = 0; j < graph.num_nodes(); ++j) common[{i, j}] = 0;
      for (size_t z = 0; z < n; ++z) ++common[{hops[x][z], hops[y][z]}];
      for (const auto& entry : common) {
        const auto key = std::tuple(hops[x][y], entry.first.first, entry.first.second);
        if (constant.emplace(key, entry.second).first->second != entry.second) return false;
      }
    }
  return true;
}

TEST(DistanceRegularTest, ArraysByHand) {
  EXPECT_EQ(ArrayText(MakeGraph(1, {})), "{;}");
  EXPECT_EQ(ArrayText(Undirected(2, {{0, 1}})), "{1;1}");
  EXPECT_EQ(ArrayText(MakeCirculant(5, {1, 4})), "{2,1;1,1}");
  EXPECT_EQ(ArrayText(MakeCirculant(6, {1, 5})), "{2,1,1;1,1,2}");
  EXPECT_EQ(ArrayText(MakeCirculant(5, {1, 2, 3, 4})), "{4;1}");
  EXPECT_EQ(ArrayText(MakeCirculant(6, {1, 3, 5})), "{3,2;1,3}");  // K(3,3)
  // The Petersen graph: an outer ring, spokes, an inner ring that skips one.
  Pairs petersen;
  for (int32_t i = 0; i < 5; ++i) {
    petersen.emplace_back(i, (i + 1) % 5);
    petersen.emplace_back(i, 5 + i);
    petersen.emplace_back(5 + i, 5 + (i + 2) % 5);
  }
  EXPECT_EQ(ArrayText(Undirected(10, petersen)), "{3,2;1,1}");
}

// A prism over a triangle: regular and vertex-transitive, but from 0 to 1 one common neighbour,
// from 0 to 3 none.
Digraph Prism() {
  return Undirected(6, {{0, 1}, {1, 2}, {0, 2}, {3, 4}, {4, 5}, {3, 5}, {0, 3}, {1, 4}, {2, 5}});
}

TEST(DistanceRegularTest, NamesAPairWhereThereIsNoArray) {
  struct Bad {
    const char* what;
    Digraph graph;
    int32_t from, to;
  };
  const std::vector<Bad> table{
      {"a directed ring", MakeCirculant(4, {1}), 0, 1},
      {"one link without a reverse", MakeGraph(3, {{0, 1}, {1, 0}, {1, 2}, {2, 1}, {2, 0}}), 2, 0},
      {"parallel links", MakeGraph(2, {{0, 1}, {0, 1}, {1, 0}, {1, 0}}), 0, 1},
      {"two parts", Undirected(4, {{0, 1}, {2, 3}}), 0, 2},
      {"a path: its ends have one neighbour", Undirected(3, {{0, 1}, {1, 2}}), 1, 0},
      {"K(2,3): its sides differ", Undirected(5, {{0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}}),
       2, 0},
      {"a prism", Prism(), 0, 3},
  };
  for (const Bad& bad : table) {
    SCOPED_TRACE(bad.what);
    const DistanceRegularity found = CheckDistanceRegular(bad.graph);
    EXPECT_FALSE(found.array.has_value());
    EXPECT_EQ(found.from.value, bad.from);
    EXPECT_EQ(found.to.value, bad.to);
  }
}

// Every circulant up to 16 nodes with up to three offsets.
TEST(DistanceRegularTest, AgreesWithTheDefinition) {
  int regular = 0, others = 0;
  for (int32_t n = 3; n <= 16; ++n)
    for (int32_t a = 1; 2 * a <= n; ++a)
      for (int32_t b = a; 2 * b <= n; ++b)
        for (int32_t c = b; 2 * c <= n; ++c) {
          if (std::gcd(std::gcd(n, a), std::gcd(b, c)) != 1) continue;
          std::vector<int32_t> steps{a, n - a, b, n - b, c, n - c};
          std::sort(steps.begin(), steps.end());
          steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
          const Digraph graph = MakeCirculant(n, steps);
          const bool expected = IsDistanceRegularByDefinition(graph);
          ASSERT_EQ(CheckDistanceRegular(graph).array.has_value(), expected)
              << n << " " << a << " " << b << " " << c;
          (expected ? regular : others) += 1;
        }
  EXPECT_GT(regular, 20);
  EXPECT_GT(others, 100);
}

TEST(DistanceRegularTest, NumbersOfNodesAndThreadsDoNotMatter) {
  const Digraph graph = MakeCirculant(13, {1, 3, 4, 9, 10, 12});  // the Paley graph
  ASSERT_EQ(ArrayText(graph), "{6,3;1,3}");
  // As large, as regular, not distance-regular.
  const Digraph other = MakeCirculant(13, {1, 2, 3, 10, 11, 12});
  const DistanceRegularity fault = CheckDistanceRegular(other);
  EXPECT_FALSE(fault.array.has_value());
  for (int threads : {1, 2, 4}) {
    SetNumThreads(threads);
    for (uint64_t seed = 0; seed < 20; ++seed)
      EXPECT_EQ(ArrayText(Relabel(graph, RandomPermutation(13, seed))), "{6,3;1,3}");
    const DistanceRegularity again = CheckDistanceRegular(other);
    EXPECT_EQ(again.from, fault.from);
    EXPECT_EQ(again.to, fault.to);
  }
  SetNumThreads(0);
}

TEST(DistanceRegularTest, OneSourceOfEachKindIsEnough) {
  const std::vector<NodeId> one{NodeId{7}};
  EXPECT_EQ(CheckDistanceRegular(MakeCirculant(13, {1, 3, 4, 9, 10, 12}), one).array->ToString(),
            "{6,3;1,3}");
  EXPECT_FALSE(CheckDistanceRegular(MakeCirculant(13, {1, 2, 3, 10, 11, 12}), one).array);
}

}  // namespace
}  // namespace tutti

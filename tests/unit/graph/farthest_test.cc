#include "tutti/graph/farthest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "graphs.h"
#include "tutti/graph/distance.h"

namespace tutti {
namespace {

std::vector<NodeId> AllNodes(const Digraph& graph) {
  std::vector<NodeId> nodes;
  for (NodeId node : graph.Nodes()) nodes.push_back(node);
  return nodes;
}

int64_t FarthestFrom(const Digraph& graph, NodeId source) {
  const std::vector<int32_t> hops = DistancesFrom(graph, source);
  return *std::max_element(hops.begin(), hops.end());
}

// Counts its searches.
class Searches {
 public:
  explicit Searches(const Digraph& graph) : graph_(graph) {}

  DistanceSearches Get() {
    return {.make_farthest_from =
                [this] {
                  return [this](NodeId source) {
                    ++count_;
                    return FarthestFrom(graph_, source);
                  };
                },
            .distances_to =
                [this](NodeId target) {
                  ++count_;
                  const std::vector<int32_t> hops = DistancesTo(graph_, target);
                  return std::vector<int64_t>(hops.begin(), hops.end());
                }};
  }
  int count() const { return count_; }

 private:
  const Digraph& graph_;
  std::atomic<int> count_{0};
};

// 0 - 1 - ... - (n - 1), both ways.
Digraph Path(int32_t n) {
  std::vector<Digraph::Arc> arcs;
  for (int32_t i = 0; i + 1 < n; ++i) {
    arcs.emplace_back(NodeId{i}, NodeId{i + 1});
    arcs.emplace_back(NodeId{i + 1}, NodeId{i});
  }
  return Digraph(n, arcs);
}

// A cycle through all nodes and as many links again by chance.
Digraph Strong(int32_t n, std::mt19937& rng) {
  std::vector<Digraph::Arc> arcs;
  for (int32_t i = 0; i < n; ++i) {
    arcs.emplace_back(NodeId{i}, NodeId{(i + 1) % n});
    const auto head = static_cast<int32_t>(rng() % static_cast<uint32_t>(n));
    if (head != i) arcs.emplace_back(NodeId{i}, NodeId{head});
  }
  return Digraph(n, arcs);
}

TEST(FarthestTest, APathNeedsAFewSearches) {
  const Digraph path = Path(10'000);
  Searches searches(path);
  const FarthestRange range = FindFarthest(AllNodes(path), searches.Get(), 1'000'000);
  EXPECT_EQ(range.least, 9'999);
  EXPECT_EQ(range.most, 9'999);
  EXPECT_LE(searches.count(), 16);
}

TEST(FarthestTest, IsWhatSearchesFromAllNodesFind) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 rng(seed);
    const Digraph graph = Strong(static_cast<int32_t>(2 + rng() % 900), rng);
    int64_t farthest = 0;
    for (NodeId node : graph.Nodes()) farthest = std::max(farthest, FarthestFrom(graph, node));
    for (const int64_t most : {int64_t{1} << 40, int64_t{0}, int64_t{100}}) {
      Searches searches(graph);
      const FarthestRange range = FindFarthest(AllNodes(graph), searches.Get(), most);
      EXPECT_LE(range.least, farthest) << seed;
      EXPECT_GE(range.most, farthest) << seed;
      if (most > 1000) {
        EXPECT_EQ(range.least, range.most) << seed;
      } else {
        EXPECT_LE(searches.count(), 16 + std::max<int64_t>(most, 256)) << seed;
      }
    }
    // Without limits each is searched from.
    Searches counted(graph);
    DistanceSearches each = counted.Get();
    each.distances_to = {};
    EXPECT_EQ(FindFarthest(AllNodes(graph), each, 0).most, farthest);
    EXPECT_EQ(counted.count(), graph.num_nodes());
  }
}

TEST(FarthestTest, NothingIsNoDistance) {
  const Digraph graph = Path(2);
  Searches searches(graph);
  EXPECT_EQ(FindFarthest({}, searches.Get(), 10).most, 0);
  EXPECT_EQ(searches.count(), 0);
}

}  // namespace
}  // namespace tutti

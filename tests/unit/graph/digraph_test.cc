#include "tutti/graph/digraph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tutti/graph/distance.h"
#include "unit/graph/graphs.h"

namespace tutti {
namespace {

TEST(Digraph, WorkedExample) {
  std::vector<int32_t> order;
  const std::vector<Digraph::Arc> arcs{{NodeId{2}, NodeId{0}},
                                       {NodeId{0}, NodeId{1}},
                                       {NodeId{2}, NodeId{1}},
                                       {NodeId{0}, NodeId{1}}};
  const Digraph graph(3, arcs, &order);
  EXPECT_EQ(order, (std::vector<int32_t>{1, 3, 0, 2}));
  EXPECT_EQ(graph.OutLinks(NodeId{0}).size(), 2);
  EXPECT_TRUE(graph.OutLinks(NodeId{1}).empty());
  ASSERT_EQ(graph.InLinks(NodeId{1}).size(), 3u);
  EXPECT_EQ(graph.InLinks(NodeId{1})[2], LinkId{3});
  EXPECT_EQ(Digraph().num_nodes(), 0);
}

TEST(DigraphProperty, RowsHoldEveryLinkOnceBothWays) {  // G1, G3
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Digraph graph = RandomGraph(9, 40, seed);
    int32_t next = 0;
    size_t in_links = 0;
    for (NodeId node : graph.Nodes()) {
      for (LinkId link : graph.OutLinks(node)) {
        EXPECT_EQ(link.value, next++);
        EXPECT_EQ(graph.tail(link), node);
      }
      const auto in = graph.InLinks(node);
      in_links += in.size();
      EXPECT_TRUE(std::is_sorted(in.begin(), in.end()));
      for (LinkId link : in) EXPECT_EQ(graph.head(link), node);
    }
    EXPECT_EQ(next, graph.num_links());
    EXPECT_EQ(in_links, static_cast<size_t>(graph.num_links()));
  }
}

TEST(DigraphProperty, TransposeMapsItsLinksBack) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Digraph graph = RandomGraph(9, 40, seed);
    std::vector<LinkId> link_map;
    const Digraph transpose = Transpose(graph, &link_map);
    for (LinkId link : transpose.Links()) {
      EXPECT_EQ(transpose.tail(link), graph.head(link_map[link.index()]));
      EXPECT_EQ(transpose.head(link), graph.tail(link_map[link.index()]));
    }
    std::sort(link_map.begin(), link_map.end());
    for (size_t i = 0; i < link_map.size(); ++i)
      EXPECT_EQ(link_map[i].value, static_cast<int32_t>(i));
  }
}

// Oracle: Floyd and Warshall.
TEST(DistanceProperty, AgreesWithFloydWarshall) {
  constexpr int32_t kNodes = 12, kFar = 1000;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Digraph graph = RandomGraph(kNodes, static_cast<int32_t>(6 + seed % 30), seed);
    std::vector<std::vector<int32_t>> hops(kNodes, std::vector<int32_t>(kNodes, kFar));
    for (size_t v = 0; v < kNodes; ++v) hops[v][v] = 0;
    for (LinkId link : graph.Links()) hops[graph.tail(link).index()][graph.head(link).index()] = 1;
    for (size_t via = 0; via < kNodes; ++via)
      for (size_t a = 0; a < kNodes; ++a)
        for (size_t b = 0; b < kNodes; ++b)
          hops[a][b] = std::min(hops[a][b], hops[a][via] + hops[via][b]);
    bool connected = true;
    for (NodeId a : graph.Nodes()) {
      const std::vector<int32_t> from = DistancesFrom(graph, a);
      for (NodeId b : graph.Nodes()) {
        const int32_t wanted = hops[a.index()][b.index()];
        connected = connected && wanted < kFar;
        EXPECT_EQ(from[b.index()], wanted < kFar ? wanted : kUnreachable);
        EXPECT_EQ(DistancesTo(graph, b)[a.index()], from[b.index()]);
      }
    }
    const Connectivity found = CheckStronglyConnected(graph);
    EXPECT_EQ(found.strongly_connected, connected);
    if (!found.strongly_connected) {
      EXPECT_EQ(hops[found.from.index()][found.to.index()], kFar);
    }
  }
}

}  // namespace
}  // namespace tutti

#include "tutti/control/connection_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "support/parse.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

using test_support::Parse;
using ::testing::HasSubstr;

std::vector<Connection> AllPairs(const Topology& network) {
  std::vector<Connection> pairs;
  for (const NodeId from : network.Ranks())
    for (const NodeId to : network.Ranks())
      if (from != to) pairs.push_back({from, to});
  return pairs;
}

ConnectionRoutes MustMake(const Topology& network, const std::vector<Connection>& connections) {
  Result<ConnectionRoutes> routes = ConnectionRoutes::Make(network, connections);
  EXPECT_TRUE(routes) << routes.error().message;
  return *std::move(routes);
}

// "host0 leaf0 spine1 leaf1 host2"
std::string Text(const Topology& network, const LinkPath& path) {
  std::string text = network.node_name(network.tail(path.front()));
  for (const LinkId link : path) text += " " + network.node_name(network.head(link));
  return text;
}

TEST(ConnectionRoutes, OfTwoLeavesByHand) {
  const Topology network = Parse("spine_leaf(2,2,2)");
  const ConnectionRoutes routes =
      MustMake(network, {{NodeId{0}, NodeId{1}}, {NodeId{0}, NodeId{2}}, {NodeId{1}, NodeId{3}}});
  std::vector<std::string> all;
  for (size_t i = 0; i < 2; ++i)
    for (const LinkPath& path : routes.AllOf(i, 100)) all.push_back(Text(network, path));
  EXPECT_THAT(all, testing::ElementsAre("host0 leaf0 host1", "host0 leaf0 spine0 leaf1 host2",
                                        "host0 leaf0 spine1 leaf1 host2"));
  // Pinned, the two that cross take a spine each.
  const Result<std::vector<LinkPath>> fair = routes.Fair();
  ASSERT_TRUE(fair) << fair.error().message;
  EXPECT_EQ(Text(network, (*fair)[1]), "host0 leaf0 spine0 leaf1 host2");
  EXPECT_EQ(Text(network, (*fair)[2]), "host1 leaf0 spine1 leaf1 host3");
}

TEST(ConnectionRoutes, InsideABoxStayThere) {
  const Topology network = Parse("cluster(boxes=2,gpus=4,nics=4,fabric=spine_leaf(2,2))");
  const ConnectionRoutes routes =
      MustMake(network, {{NodeId{0}, NodeId{3}}, {NodeId{0}, NodeId{4}}});
  // The leaf of both NICs is as near as the NVSwitch.
  EXPECT_EQ(routes.AllOf(0, 100).size(), 1u);
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(Text(network, routes.ByHash(seed)[0]), "box0.gpu0 box0.nvswitch box0.gpu3");
  EXPECT_EQ(routes.AllOf(1, 100).size(), 2u);
}

// Every path is a shortest one through switches alone, and one of all that there are.
TEST(ConnectionRoutes, AreShortestWays) {
  for (const char* expression :
       {"spine_leaf(3,4,2)", "fat_tree(4)", "dgx_a100(2,fabric=rails(spines=2))", "switch2d(3,4)",
        "cluster(boxes=4,gpus=4,nics=2,fabric=spine_leaf(2,3),oversubscription=2)"}) {
    SCOPED_TRACE(expression);
    const Topology network = Parse(expression);
    std::vector<Connection> pairs = AllPairs(network);
    std::erase_if(pairs, [&](const Connection& pair) {
      return !ConnectionRoutes::Make(network, std::vector{pair});  // switch2d: not in one line
    });
    ASSERT_FALSE(pairs.empty());
    const ConnectionRoutes routes = MustMake(network, pairs);
    const Result<std::vector<LinkPath>> fair = routes.Fair();
    ASSERT_TRUE(fair) << fair.error().message;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const std::vector<LinkPath> hashed = routes.ByHash(seed);
      EXPECT_EQ(hashed, routes.ByHash(seed));
      for (size_t i = 0; i < pairs.size(); ++i) {
        const std::vector<LinkPath> all = routes.AllOf(i, 1 << 20);
        EXPECT_EQ(std::set<LinkPath>(all.begin(), all.end()).size(), all.size());
        for (const LinkPath& path : {hashed[i], (*fair)[i]}) {
          EXPECT_EQ(std::count(all.begin(), all.end(), path), 1);
          EXPECT_EQ(network.tail(path.front()), pairs[i].from);
          EXPECT_EQ(network.head(path.back()), pairs[i].to);
          for (size_t hop = 1; hop < path.size(); ++hop) {
            EXPECT_EQ(network.tail(path[hop]), network.head(path[hop - 1]));
            EXPECT_FALSE(network.is_rank(network.tail(path[hop])));
          }
        }
      }
    }
  }
}

// Over many connections of the same ends every path is as likely.
TEST(ConnectionRoutes, HashesSpreadOverAllWays) {
  const Topology network = Parse("fat_tree(4)");
  const std::vector<Connection> many(4000, Connection{NodeId{0}, NodeId{15}});
  std::map<LinkPath, int> used;
  for (const LinkPath& path : MustMake(network, many).ByHash(7)) ++used[path];
  ASSERT_EQ(used.size(), 4u);
  for (const auto& [path, count] : used) EXPECT_NEAR(count, 1000, 120);
  // Two seeds are two draws.
  EXPECT_NE(MustMake(network, many).ByHash(7), MustMake(network, many).ByHash(8));
}

// Seeds are draws of their own: that of another seed is not the same one with ranks exchanged, so among
// the loads of all pairs, sorted, hardly two are alike.
TEST(ConnectionRoutes, SeedsAreNoPermutationsOfRanks) {
  const Topology network = Parse("spine_leaf(4,4,4)");
  const ConnectionRoutes routes = MustMake(network, AllPairs(network));
  std::set<std::vector<int>> loads;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    std::vector<int> load(static_cast<size_t>(network.num_links()));
    for (const LinkPath& path : routes.ByHash(seed))
      for (const LinkId link : path) ++load[link.index()];
    std::sort(load.begin(), load.end());
    loads.insert(load);
  }
  EXPECT_GE(loads.size(), 15u);
}

// A full bisection and a permutation of its ranks: pinned, no link is asked for more than it has more
// than half as often as by hash; by brute force on all choices of up to 6 flows, it is the least that
// can be.
TEST(ConnectionRoutes, FairIsTheBestOfAllChoices) {
  const Topology network = Parse("spine_leaf(2,3,3)");
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<int32_t> to = {3, 4, 5};
    for (size_t i = 3; i > 1; --i) std::swap(to[i - 1], to[random.Below(i)]);
    std::vector<Connection> connections;
    for (int32_t i = 0; i < 3; ++i) {
      connections.push_back({NodeId{i}, NodeId{to[static_cast<size_t>(i)]}});
      connections.push_back({NodeId{to[static_cast<size_t>(i)]}, NodeId{i}});
    }
    const ConnectionRoutes routes = MustMake(network, connections);
    const auto fullest = [&](const std::vector<LinkPath>& paths) {
      std::map<LinkId, int> on_link;
      int most = 0;
      for (const LinkPath& path : paths)
        for (const LinkId link : path) most = std::max(most, ++on_link[link]);
      return most;
    };
    int best = 100;
    for (int code = 0; code < 729; ++code) {
      std::vector<LinkPath> paths;
      int rest = code;
      for (size_t i = 0; i < connections.size(); ++i, rest /= 3)
        paths.push_back(routes.AllOf(i, 100)[static_cast<size_t>(rest % 3)]);
      best = std::min(best, fullest(paths));
    }
    EXPECT_EQ(best, 1);
    EXPECT_EQ(fullest(*routes.Fair()), best);
    EXPECT_GE(fullest(routes.ByHash(seed)), best);
  }
}

TEST(ConnectionRoutes, RefusesEndsWithoutAWay) {
  const auto message = [](const Topology& network, Connection connection) {
    const Result<ConnectionRoutes> routes =
        ConnectionRoutes::Make(network, std::vector{connection});
    return routes ? std::string("accepted") : routes.error().message;
  };
  EXPECT_THAT(message(Parse("rail(2,2)"), {NodeId{0}, NodeId{3}}),
              HasSubstr("no path through switches from box0.gpu0 to box1.gpu1"));
  EXPECT_THAT(message(Parse("ring(4)"), {NodeId{0}, NodeId{2}}), HasSubstr("no path"));
  EXPECT_EQ(message(Parse("ring(4)"), {NodeId{0}, NodeId{1}}), "accepted");
  EXPECT_THAT(message(Parse("switch(4)"), {NodeId{0}, NodeId{4}}),
              HasSubstr("from 0 to 4, wanted ranks 0 to 3 of switch(4)"));
  EXPECT_THAT(message(Parse("switch(4)"), {NodeId{2}, NodeId{2}}), HasSubstr("rank 2 to itself"));
}

}  // namespace
}  // namespace tutti

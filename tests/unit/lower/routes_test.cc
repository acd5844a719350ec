#include "tutti/lower/routes.h"

#include <gmock/gmock.h>

#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tutti/route/router.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using testing::HasSubstr;

Routing MustRoute(const Topology& topology, const char* router) {
  return RunRouter(*FindRouter(router), topology, {})->routing;
}

const char* const kNetworks[] = {"ring(4)", "genkautz(3,12)", "uniring(2,3)", "switch(4)",
                                 "torus(3,3)"};

TEST(Routes, PerRankByHand) {
  const Topology ring = *ParseTopology("ring(4)");
  const std::string text = *ToRoutesPerRank(ring, MustRoute(ring, "ewsp"));
  EXPECT_THAT(text, HasSubstr("tutti-routes-per-rank 1\nnetwork "));
  EXPECT_THAT(text, HasSubstr("ranks 4 links 8 chunks 2 layers 0\nrank 0\n"
                              "1 0 2 0 ports 0\n2 0 1 0 ports 0 1\n2 1 2 0 ports 1 1\n"
                              "3 0 2 0 ports 1\nrank 1\n"));
}

// Whoever reads the text gets the routing again.
TEST(Routes, PerRankSaysEverything) {
  for (const char* network : kNetworks) {
    const Topology topology = *ParseTopology(network);
    Routing routing = MustRoute(topology, "mcf");
    routing.num_layers = 2;
    for (int64_t i = 0; i < routing.num_paths(); ++i)
      routing.layer.push_back(static_cast<int16_t>(i % 2));
    std::istringstream text(*ToRoutesPerRank(topology, routing));
    std::string line, word;
    for (int skipped = 0; skipped < 3; ++skipped) std::getline(text, line);
    RoutingBuilder builder(topology.num_ranks(), routing.units_per_demand);
    std::vector<int16_t> layers;
    int32_t source = -1, pair = 0;
    while (std::getline(text, line)) {
      std::istringstream fields(line);
      if (line.starts_with("rank ")) {
        fields >> word >> source;
        continue;
      }
      int64_t begin = 0, end = 0;
      int32_t destination = 0, port = 0;
      int16_t layer = 0;
      fields >> destination >> begin >> end >> layer >> word;
      layers.push_back(layer);
      for (; pair < source * topology.num_ranks() + destination; ++pair) builder.EndPair();
      std::vector<LinkId> hops;
      NodeId at{source};
      while (fields >> port) {
        hops.push_back(topology.OutLinks(at)[port]);
        at = topology.head(hops.back());
      }
      builder.AddPath(hops, end - begin);
    }
    for (; pair < topology.num_ranks() * topology.num_ranks(); ++pair) builder.EndPair();
    const Routing again = std::move(builder).Finish();
    EXPECT_EQ(again.first_path, routing.first_path) << network;
    EXPECT_EQ(again.weight, routing.weight);
    EXPECT_EQ(again.first_hop, routing.first_hop);
    EXPECT_EQ(again.hops, routing.hops);
    EXPECT_EQ(layers, routing.layer);
  }
}

// Following the tables from link to link is following the paths.
TEST(Routes, TablesLeadAlongThePaths) {
  for (const char* network : kNetworks) {
    const Topology topology = *ParseTopology(network);
    const Routing routing = MustRoute(topology, "ewsp");
    std::istringstream text(*ToRouteTables(topology, routing));
    std::string line, word;
    for (int skipped = 0; skipped < 3; ++skipped) std::getline(text, line);
    using Route = std::tuple<int32_t, int32_t, int32_t>;
    std::map<std::pair<int32_t, Route>, int32_t> next;  // -1 - rank or link -> link, -1: here
    int32_t at = 0;
    while (std::getline(text, line)) {
      std::istringstream fields(line);
      if (line.starts_with("rank ") || line.starts_with("link ")) {
        fields >> word >> at;
        if (word == "rank") at = -1 - at;
        continue;
      }
      int32_t source = 0, destination = 0, number = 0;
      fields >> source >> destination >> number >> word;
      const bool is_new = next.emplace(std::pair(at, Route(source, destination, number)),
                                       word == "here" ? -1 : std::stoi(word))
                              .second;
      EXPECT_TRUE(is_new) << line;
    }
    size_t entries = 0;
    for (const NodeId s : topology.Ranks())
      for (const NodeId d : topology.Ranks()) {
        int32_t number = 0;
        for (const PathId path : routing.Paths(s, d)) {
          const Route route(s.value, d.value, number++);
          int32_t where = -1 - s.value;
          for (const LinkId link : routing.Hops(path)) {
            EXPECT_EQ(next.at({where, route}), link.value) << network;
            where = link.value;
          }
          EXPECT_EQ(next.at({where, route}), -1) << network;
          entries += routing.Hops(path).size() + 1;
        }
      }
    EXPECT_EQ(next.size(), entries);
  }
}

TEST(Routes, RefuseAnotherNetwork) {
  const Topology ring = *ParseTopology("ring(4)"), other = *ParseTopology("mesh(4)");
  const Routing routing = MustRoute(ring, "sssp");
  EXPECT_EQ(ToRoutesPerRank(other, routing).error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(ToRouteTables(other, routing).error().message, HasSubstr("another network than"));
}

}  // namespace
}  // namespace tutti

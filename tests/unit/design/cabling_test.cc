#include "tutti/design/cabling.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tutti/design/finder.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

std::vector<CableRun> MustCable(const std::string& recipe, bool two_way) {
  const Result<Topology> topology = ParseTopology(recipe);
  EXPECT_TRUE(topology) << recipe;
  Result<std::vector<CableRun>> runs = CablingOf(*topology, two_way);
  EXPECT_TRUE(runs) << recipe << " " << runs.error().message;
  return runs ? *std::move(runs) : std::vector<CableRun>();
}

// biring(2,3): each rank has a cable to both others, the one to the lower number in port 0.
TEST(Cabling, ByHand) {
  EXPECT_EQ(CablingCsv(MustCable("biring(2,3)", true), true),
            "cable,rank_a,port_a,rank_b,port_b\n"
            "1,0,0,1,0\n"
            "2,0,1,2,0\n"
            "3,1,1,2,1\n");
  EXPECT_EQ(CablingCsv(MustCable("uniring(2,2)", false), false),
            "fibre,from_rank,from_port,to_rank,to_port\n"
            "1,0,0,1,0\n"
            "2,0,1,1,1\n"
            "3,1,0,0,0\n"
            "4,1,1,0,1\n");
}

using Ends = std::map<std::pair<int32_t, int32_t>, int32_t>;  // links by (tail, head)

Ends LinksOf(const Topology& topology) {
  Ends links;
  for (LinkId link : topology.Links())
    ++links[{topology.tail(link).value, topology.head(link).value}];
  return links;
}

// Ports are 0 .. k-1 at each rank, none twice, and the cables are the links.
void ExpectSound(const Design& design, bool two_way) {
  SCOPED_TRACE(design.recipe);
  const Result<Topology> topology = ParseTopology(design.recipe);
  ASSERT_TRUE(topology);
  std::set<std::tuple<bool, int32_t, int32_t>> used;  // receive side, rank, port
  std::map<std::pair<bool, int32_t>, int32_t> count;
  Ends links;
  const auto use = [&](bool receives, const PortEnd& end) {
    EXPECT_TRUE(used.insert({receives, end.rank, end.port}).second)
        << "rank " << end.rank << " port " << end.port;
    EXPECT_GE(end.port, 0);
    EXPECT_LT(end.port, design.degree);
    ++count[{receives, end.rank}];
  };
  for (const CableRun& run : MustCable(design.recipe, two_way)) {
    use(false, run.from);
    use(!two_way, run.to);
    ++links[{run.from.rank, run.to.rank}];
    if (two_way) ++links[{run.to.rank, run.from.rank}];
  }
  EXPECT_EQ(links, LinksOf(*topology));
  for (const auto& [side, ports] : count) {
    EXPECT_TRUE(used.contains({side.first, side.second, ports - 1}));  // from 0 on, no gap
    const auto loops = static_cast<int32_t>(topology->self_loops(NodeId{side.second}).size());
    EXPECT_EQ(ports, design.degree - loops);
  }
}

TEST(Cabling, EveryPortOnceOverManyDesigns) {
  for (int32_t degree : {1, 2, 3, 4, 6})
    for (int32_t ranks = 2; ranks <= 40; ++ranks)
      for (bool two_way : {false, true}) {
        const Result<std::vector<Design>> designs =
            FindFrontier({.ranks = ranks,
                          .degree = degree,
                          .bidirectional_only = two_way,
                          .collective = CollectiveKind::kAllReduce,
                          .bases = {}});
        if (!designs) continue;  // no two-way network of this size and degree
        for (const Design& design : *designs) ExpectSound(design, two_way);
      }
}

TEST(Cabling, RefusesWhatCannotBeCabled) {
  const Result<std::vector<CableRun>> one_way = CablingOf(*ParseTopology("uniring(1,3)"), true);
  ASSERT_FALSE(one_way);
  EXPECT_EQ(one_way.error().message,
            "uniring(1,3): the link from rank 0 to rank 1 has no reverse, so it is no two-way "
            "cable");
  EXPECT_FALSE(CablingOf(*ParseTopology("switch(4)"), true));
}

}  // namespace
}  // namespace tutti

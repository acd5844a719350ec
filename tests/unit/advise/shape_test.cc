// Shapes of schedules whose trees are known by hand.
#include "tutti/advise/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "advise_support.h"
#include "tutti/advise/explanation.h"

namespace tutti {
namespace {

using Kind = CollectiveKind;

ScheduleShape ShapeOn(const Topology& topology, Kind kind, const std::string& algorithm) {
  return ShapeOf(topology, MustMake(topology, kind, algorithm), FindBoxes(topology));
}

// --- Boxes ---------------------------------------------------------------------------------------

TEST(BoxesTest, AreWhatNamesSay) {
  const Boxes boxes = FindBoxes(Parse("dgx_h100(2)"));
  EXPECT_EQ(boxes.found_by, Boxes::FoundBy::kNames);
  EXPECT_EQ(boxes.names, (std::vector<std::string>{"box0", "box1"}));
  EXPECT_EQ(boxes.sizes, (std::vector<int32_t>{8, 8}));
  EXPECT_EQ(boxes.box_of[9], 1);
  EXPECT_EQ(boxes.place[9], 1);
}

// Two rings of three with 2 GB/s, joined by three cables of 1 GB/s: ranks are row-major.
TEST(BoxesTest, AreWhatFasterLinksJoin) {
  const Boxes boxes = FindBoxes(Parse("torus(2,3,bw=[1,2]GB/s)"));
  EXPECT_EQ(boxes.found_by, Boxes::FoundBy::kBandwidth);
  EXPECT_EQ(boxes.box_of, (std::vector<int32_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(boxes.place, (std::vector<int32_t>{0, 1, 2, 0, 1, 2}));
}

TEST(BoxesTest, AreNoneWhereAllIsAlike) {
  for (const std::string expression :
       {"ring(4)", "dgx1", "dgx_h100(1)", "switch(5)", "complete(2)"})
    EXPECT_FALSE(FindBoxes(Parse(expression)).some()) << expression;
}

// --- Rings and trees -----------------------------------------------------------------------------

// Both directions, half a shard each: from every root a chain of three hops in either.
TEST(ShapeTest, RingIsTwoRings) {
  const ScheduleShape shape = ShapeOn(Parse("ring(4)"), Kind::kAllGather, "ring");
  EXPECT_EQ(shape.spread.rings, 2);
  EXPECT_EQ(shape.spread.trees, 8);
  EXPECT_EQ(shape.spread.roots, 4);
  EXPECT_EQ(shape.spread.min_height, 3);
  EXPECT_EQ(shape.spread.max_height, 3);
  EXPECT_EQ(shape.spread.max_children, 1);
  EXPECT_EQ(shape.spread.not_trees, 0);
  EXPECT_EQ(shape.reduced.trees, 0);
}

TEST(ShapeTest, UniringOfAllReduceReducesAndSpreadsOverOneRing) {
  const ScheduleShape shape = ShapeOn(Parse("ring(5)"), Kind::kAllReduce, "uniring");
  EXPECT_EQ(shape.reduced.rings, 1);
  EXPECT_EQ(shape.spread.rings, 1);
  EXPECT_EQ(shape.reduced.max_height, 4);
  EXPECT_EQ(shape.reduced.roots, 5);
}

// From each rank to both neighbours and half of it from either to the one across: two trees.
TEST(ShapeTest, BreadthFirstOnARingIsTreesOfHeightTwo) {
  const ScheduleShape shape = ShapeOn(Parse("ring(4)"), Kind::kAllGather, "bfb");
  EXPECT_EQ(shape.spread.rings, 0);
  EXPECT_EQ(shape.spread.trees, 8);
  EXPECT_EQ(shape.spread.max_height, 2);
  EXPECT_EQ(shape.spread.max_children, 2);
}

TEST(ShapeTest, DirectIsOneHop) {
  for (const Kind kind : {Kind::kAllGather, Kind::kAllToAll}) {
    const ScheduleShape shape = ShapeOn(Parse("complete(5)"), kind, "direct");
    EXPECT_EQ(shape.spread.max_height, 1);
    EXPECT_EQ(shape.spread.roots, 5);
    EXPECT_EQ(shape.spread.rings, 0);
  }
}

// Recursive halving of 8: each chunk is reduced over a tree of three levels, and spread over one.
TEST(ShapeTest, HalvingAndDoublingIsTreesOfThreeLevels) {
  const ScheduleShape shape = ShapeOn(Parse("hypercube(3)"), Kind::kAllReduce, "rhd");
  EXPECT_EQ(shape.reduced.max_height, 3);
  EXPECT_EQ(shape.spread.max_height, 3);
  EXPECT_EQ(shape.spread.max_children, 3);
  EXPECT_EQ(shape.reduced.not_trees, 0);
  EXPECT_EQ(shape.reduced.roots, 8);
}

// A rank that sends the sum of one chunk to two others: no tree.
TEST(ShapeTest, ExchangesAreNoTrees) {
  const Topology topology = Parse("complete(3)");
  Schedule schedule{.collective = *Collective::Make(Kind::kAllReduce, 3, {.all_reduce_shards = 1})};
  schedule.num_steps = 1;
  for (LinkId link : topology.Links())
    schedule.transfers.push_back({ShardId{0}, link, 0, 1, 0, TransferOp::kReduce});
  const ScheduleShape shape = ShapeOf(topology, schedule, Boxes());
  EXPECT_EQ(shape.reduced.trees, 0);
  EXPECT_EQ(shape.reduced.not_trees, 1);
}

TEST(ShapeTest, NothingSentHasNoShape) {
  const Topology topology = Parse("ring(3)");
  const Schedule nothing{.collective = *Collective::Make(Kind::kAllGather, 3)};
  const ScheduleShape shape = ShapeOf(topology, nothing, FindBoxes(topology));
  EXPECT_EQ(shape.spread.trees + shape.reduced.trees, 0);
}

// --- Boxes on rails ------------------------------------------------------------------------------

// Two boxes of two: whatever the trees are, a chunk that all four want enters the other box once at
// least, and the switches of rails pass it between the same places only.
TEST(ShapeTest, ForestOnRailsEntersTheOtherBoxOnce) {
  const Topology topology = Parse("cluster(boxes=2,gpus=2,nvswitch=4GB/s,nic=1GB/s)");
  const ScheduleShape shape = ShapeOn(topology, Kind::kAllGather, "forest");
  EXPECT_EQ(shape.between.min_crossings, 1);
  EXPECT_EQ(shape.between.max_crossings, 1);
  EXPECT_EQ(shape.between.across, Rational(1));  // each of four shards of M/4 once
  EXPECT_EQ(shape.between.on_rail, shape.between.across);
  EXPECT_EQ(shape.between.inside, Rational(2));  // and to the second GPU of each box
  EXPECT_EQ(shape.spread.not_trees, 0);
}

// What crosses between boxes is what enters the switches between them.
TEST(ShapeProperty, AcrossIsWhatTheRailsCarry) {
  for (const std::string expression :
       {"dgx_h100(2)", "cluster(boxes=3,gpus=2,fabric=switch)", "cluster(boxes=2,gpus=4,nics=2)"})
    for (const Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce}) {
      SCOPED_TRACE(expression);
      const Topology topology = Parse(expression);
      const Schedule schedule = MustMake(topology, kind, "forest");
      Rational rails;
      for (const LinkTraffic& row : TrafficOf(topology, schedule)) {
        const std::string& head = topology.node_name(topology.head(row.link));
        const bool is_fabric = head.find("box") == std::string::npos;
        if (is_fabric) rails += row.share;
      }
      EXPECT_EQ(ShapeOf(topology, schedule, FindBoxes(topology)).between.across, rails);
    }
}

// Every all-gather and all-reduce spreads each byte to N - 1 ranks: boxes or not, trees have as
// many branches, so that inside + across is (N - 1) M, and all-reduce reduces as much.
TEST(ShapeProperty, BranchesAreNMinusOne) {
  for (const std::string expression : {"dgx_h100(2)", "cluster(boxes=3,gpus=2,fabric=switch)",
                                       "torus(2,4,bw=[1,2]GB/s)", "mesh(3,3,bw=[1,4]GB/s)"})
    for (const Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce}) {
      SCOPED_TRACE(expression);
      const Topology topology = Parse(expression);
      const ScheduleShape shape = ShapeOn(topology, kind, "forest");
      const int64_t ways = kind == Kind::kAllReduce ? 2 : 1;
      EXPECT_EQ(shape.between.inside + shape.between.across,
                Rational(ways * (topology.num_ranks() - 1)));
      EXPECT_EQ(shape.spread.not_trees + shape.reduced.not_trees, 0);
    }
}

}  // namespace
}  // namespace tutti

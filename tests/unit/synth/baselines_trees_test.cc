// The competitors that go by trees: c-cube, tto, multitree; and single faults of all competitors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "classic_support.h"
#include "tutti/base/cancel.h"

namespace tutti::classic_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::UnorderedElementsAre;
using Kind = CollectiveKind;

void ExpectTreesRefused(std::string_view name, std::string_view expression, Kind kind,
                        std::string_view why, const SynthOptions& options = {}) {
  const Topology topology = Parse(expression);
  const Result<Schedule> made =
      Synthesize(name, topology, CollectiveFor(name, kind, topology.num_ranks()), options);
  ASSERT_FALSE(made.has_value()) << name << " on " << expression;
  EXPECT_THAT(made.error().message, HasSubstr(std::string(why))) << expression;
}

// --- C-Cube --------------------------------------------------------------------------------------

TEST(CCubeTest, TreesShareNoLinkAndLeaveTwoOfSixIdle) {
  const Topology dgx1 = Parse("dgx1");
  const Schedule made = MustRun("c-cube", dgx1, Kind::kAllReduce, {.chunks = 2});
  ASSERT_EQ(made.transfers.size(), 2u * 2 * 7);
  std::vector<int32_t> carries(static_cast<size_t>(dgx1.num_links()), 0);
  std::vector<int32_t> out(8, 0), children(16, 0);
  for (const Transfer& transfer : made.transfers) {
    ++carries[transfer.link.index()];
    ++out[dgx1.tail(transfer.link).index()];
    if (transfer.op == TransferOp::kCopy)
      ++children[static_cast<size_t>(transfer.begin) * 8 + dgx1.tail(transfer.link).index()];
  }
  EXPECT_THAT(carries, Each(Le(1)));
  EXPECT_THAT(out, Each(Le(4)));
  EXPECT_THAT(children, Each(Le(2)));
}

TEST(CCubeTest, CostIsHalfTheChunksAndTwiceTheDepth) {
  for (int32_t chunks : {2, 4, 6, 20, 100}) {
    const StepCost cost = CostOf("c-cube", "dgx1", Kind::kAllReduce, {.chunks = chunks});
    EXPECT_EQ(cost.tl, chunks / 2 + 5) << chunks;
    EXPECT_EQ(cost.tb, Rational(6) * Rational(cost.tl, chunks)) << chunks;
  }
}

TEST(CCubeTest, OtherMachinesAreRefused) {
  ExpectTreesRefused("c-cube", "hypercube(3)", Kind::kAllReduce, "too few links 1 - 2");
  ExpectTreesRefused("c-cube", "complete(8)", Kind::kAllReduce, "too few links");
  ExpectTreesRefused("c-cube", "torus(3,3)", Kind::kAllReduce, "9 ranks and 0 switches");
  ExpectTreesRefused("c-cube", "switch(8)", Kind::kAllReduce, "8 ranks and 1 switches");
  ExpectTreesRefused("c-cube", "uniring(6,8)", Kind::kAllReduce, "without a reverse");
  ExpectTreesRefused("c-cube", "dgx1", Kind::kAllGather, "makes no all-gather");
  ExpectTreesRefused("c-cube", "dgx1", Kind::kAllReduce, "multiple of 2", {.chunks = 3});
}

// --- TTO -----------------------------------------------------------------------------------------

// mesh(2,2), one chunk a tree, ranks 0 1 / 2 3. Spread: T0 0 -> 2, 0 -> 1, 2 -> 3; T1 1 -> 0,
// 1 -> 3, 0 -> 2; T2 3 -> 2, 2 -> 0, 3 -> 1. Rank 2 is the corner that T1 reaches over T0's link.
TEST(TtoTest, WorkedExample) {
  const Topology topology = Parse("mesh(2,2)");
  const Schedule made = MustRun("tto", topology, Kind::kAllReduce, {.chunks = 3});
  std::vector<std::vector<std::string>> down(3), up(3);
  for (const Transfer& transfer : made.transfers) {
    const int32_t tail = topology.tail(transfer.link).value;
    const int32_t head = topology.head(transfer.link).value;
    for (int32_t unit = transfer.begin; unit < transfer.end; ++unit) {
      const auto tree = static_cast<size_t>(unit);
      if (transfer.op == TransferOp::kCopy)
        down[tree].push_back(std::to_string(tail) + std::to_string(head));
      else
        up[tree].push_back(std::to_string(head) + std::to_string(tail));
    }
  }
  EXPECT_THAT(down[0], UnorderedElementsAre("02", "01", "23"));
  EXPECT_THAT(down[1], UnorderedElementsAre("10", "13", "02"));
  EXPECT_THAT(down[2], UnorderedElementsAre("32", "20", "31"));
  EXPECT_THAT(up[0], UnorderedElementsAre("02", "01", "23"));
  EXPECT_THAT(up[1], UnorderedElementsAre("10", "13", "02"));
  EXPECT_THAT(up[2], UnorderedElementsAre("32", "20", "31"));
}

TEST(TtoTest, TreesShareNoLinkButAtOneCorner) {
  const std::vector<std::pair<int32_t, int32_t>> sizes = {{2, 2}, {2, 5}, {5, 2}, {3, 3},
                                                          {4, 4}, {4, 7}, {6, 6}};
  for (const auto& size : sizes) {
    const std::string name =
        "mesh(" + std::to_string(size.first) + "," + std::to_string(size.second) + ")";
    const Topology topology = Parse(name);
    const int32_t corner = (size.first - 1) * size.second;
    for (int32_t chunks : {3, 6}) {  // the corner is served from above, then from the right too
      const Schedule made = MustRun("tto", topology, Kind::kAllReduce, {.chunks = chunks});
      const int32_t each = chunks / 3;
      std::vector<int32_t> tree_of(static_cast<size_t>(topology.num_links()), -1);
      for (const Transfer& transfer : made.transfers) {
        EXPECT_EQ(transfer.units(), 1);
        if (transfer.op != TransferOp::kCopy || topology.head(transfer.link).value == corner)
          continue;
        int32_t& tree = tree_of[transfer.link.index()];
        EXPECT_TRUE(tree == -1 || tree == transfer.begin / each) << name;
        tree = transfer.begin / each;
      }
      EXPECT_EQ(made.transfers.size(),
                static_cast<size_t>(2 * chunks * (topology.num_ranks() - 1)));
    }
  }
}

// A round of three chunks takes 2.5 steps: 5/6 M over one link, of which B has four.
TEST(TtoTest, CostApproachesFiveSixths) {
  for (const char* expression : {"mesh(4,4)", "mesh(5,5)", "mesh(4,6)"}) {
    const int32_t chunks = 600;
    const StepCost cost = CostOf("tto", expression, Kind::kAllReduce, {.chunks = chunks});
    EXPECT_EQ(cost.tb, Rational(4) * Rational(cost.tl, chunks)) << expression;
    EXPECT_GE(cost.tl, chunks * 5 / 6) << expression;
    EXPECT_LE(cost.tl, chunks * 5 / 6 + 40) << expression;
  }
}

TEST(TtoTest, OtherNetworksAreRefused) {
  for (const char* expression : {"torus(4,4)", "mesh(5)", "mesh(2,2,2)", "mesh(1,4)", "ring(4)"})
    ExpectTreesRefused("tto", expression, Kind::kAllReduce, "needs a mesh of two dimensions");
  ExpectTreesRefused("tto", "mesh(2,2)", Kind::kReduce, "makes no reduce");
  ExpectTreesRefused("tto", "mesh(2,2)", Kind::kAllReduce, "multiple of 3", {.chunks = 4});
  ExpectTreesRefused("tto", "mesh(2,2)", Kind::kAllReduce, "more than 2^31 transfers",
                     {.chunks = 999'999'999});
}

TEST(TtoTest, AllReduceOfNShardsIsRefused) {
  const std::vector<std::pair<const char*, const char*>> cases = {{"tto", "mesh(2,2)"},
                                                                  {"c-cube", "dgx1"}};
  for (const auto& c : cases) {
    const Topology topology = Parse(c.second);
    const Result<Schedule> made =
        Synthesize(c.first, topology, *Collective::Make(Kind::kAllReduce, topology.num_ranks()));
    ASSERT_FALSE(made.has_value());
    EXPECT_THAT(made.error().message, HasSubstr("over one shard"));
  }
}

// --- MultiTree -----------------------------------------------------------------------------------

// mesh(2,2): in the first step every rank reaches both neighbours over all eight links; in the
// second every tree takes a link to the opposite rank, from the neighbour that joined first.
TEST(MultiTreeTest, WorkedExample) {
  const Topology topology = Parse("mesh(2,2)");
  const Schedule made = MustRun("multitree", topology, Kind::kAllGather);
  EXPECT_EQ(made.num_steps, 2);
  std::vector<std::string> second;
  for (const Transfer& transfer : made.transfers) {
    const int32_t tail = topology.tail(transfer.link).value;
    if (transfer.step == 0) {
      EXPECT_EQ(transfer.shard.value, tail);
      continue;
    }
    second.push_back(std::to_string(transfer.shard.value) + ":" + std::to_string(tail) +
                     std::to_string(topology.head(transfer.link).value));
  }
  EXPECT_THAT(second, UnorderedElementsAre("0:13", "1:02", "2:01", "3:10"));
}

// The least number of steps but on torus(3,3), where turns take links that others need.
TEST(MultiTreeTest, CostIsTheStepsOfWholeShards) {
  struct Case {
    const char* expression;
    int32_t steps;
  };
  const std::vector<Case> cases = {{"complete(6)", 1},  {"uniring(1,5)", 4}, {"ring(7)", 3},
                                   {"ring(8)", 4},      {"torus(3,3)", 3},   {"hypercube(3)", 3},
                                   {"bipartite(3)", 2}, {"mesh(5)", 4}};
  for (const Case& c : cases) {
    const Topology topology = Parse(c.expression);
    const StepCost cost = CostOf("multitree", c.expression, Kind::kAllGather);
    EXPECT_EQ(cost.tl, c.steps) << c.expression;
    EXPECT_EQ(cost.tb, Rational(cost.tl, topology.num_ranks()) *
                           Rational(topology.max_in_bandwidth(), topology.bandwidth(LinkId{0})))
        << c.expression;
  }
}

// Chunks do not overlap: they change nothing but the units.
TEST(MultiTreeTest, ChunksGainNothing) {
  const StepCost one = CostOf("multitree", "mesh(4,4)", Kind::kAllReduce);
  const StepCost many = CostOf("multitree", "mesh(4,4)", Kind::kAllReduce, {.chunks = 16});
  EXPECT_EQ(one.tl, many.tl);
  EXPECT_EQ(one.tb, many.tb);
}

TEST(MultiTreeTest, EachLinkCarriesOneShardAStep) {
  for (const char* expression : {"torus(5,5)", "dgx1", "genkautz(3,10)", "mesh(3,4)"}) {
    const Schedule made = MustRun("multitree", Parse(expression), Kind::kAllGather);
    std::set<std::pair<int32_t, int32_t>> used;
    for (const Transfer& transfer : made.transfers)
      EXPECT_TRUE(used.emplace(transfer.step, transfer.link.value).second) << expression;
  }
}

TEST(MultiTreeTest, SwitchesAreRefused) {
  ExpectTreesRefused("multitree", "switch(4)", Kind::kAllGather, "unwind(switch(4),degree=2)");
}

// --- Every network -------------------------------------------------------------------------------

TEST(RivalsProperty, TreesAreProvenOnManyNetworks) {
  for (const char* expression :
       {"ring(2)", "ring(9)", "uniring(2,5)", "torus(4,4)", "torus(3,2,2)", "mesh(3,4)", "mesh(6)",
        "hypercube(4)", "complete(5)", "dgx1", "genkautz(2,7)", "kautz(2,2)", "debruijn(2,3)",
        "dircirculant(2)", "without(torus(4,4),links=3,seed=2)", "dragonfly(3,4)",
        "unwind(rfs(2,3,4),degree=2)", "torus(4,3,bw=[10,40]GB/s,alpha=[1,2]us)"}) {
    const Topology topology = Parse(expression);
    for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce})
      for (int32_t chunks : {0, 3}) {
        SCOPED_TRACE(std::string(expression) + " " + std::string(Name(kind)));
        const Schedule made = MustRun("multitree", topology, kind, {.chunks = chunks});
        EXPECT_EQ(MustRun("multitree", topology, kind, {.chunks = chunks}), made);
      }
  }
  for (const char* expression :
       {"mesh(2,2)", "mesh(2,3)", "mesh(3,2)", "mesh(5,4)", "mesh(1,3,1,4)", "mesh(8,8)",
        "mesh(3,4,bw=[10,40]GB/s)", "mesh(2,4,alpha=[1,2]us,parallel=2)"})
    for (int32_t chunks : {0, 3, 6, 21})
      MustRun("tto", Parse(expression), Kind::kAllReduce,
              {.chunks = chunks, .size_bytes = 1 << 20});
  for (int32_t chunks : {0, 2, 10})
    MustRun("c-cube", Parse("dgx1"), Kind::kAllReduce, {.chunks = chunks});
}

// No schedule delivers in vain: each transfer left out, sent twice or with the other operation is
// found by the verifier.
TEST(RivalsProperty, SingleFaultsAreFound) {
  struct Case {
    const char* name;
    const char* expression;
    Kind kind;
    int32_t chunks;
  };
  const std::vector<Case> cases = {{"blueconnect", "torus(3,2)", Kind::kAllReduce, 2},
                                   {"themis", "unwind(rfs(2,2,3),degree=1)", Kind::kAllGather, 2},
                                   {"c-cube", "dgx1", Kind::kAllReduce, 4},
                                   {"multitree", "mesh(2,3)", Kind::kAllReduce, 1},
                                   {"tto", "mesh(3,3)", Kind::kAllReduce, 6}};
  for (const Case& c : cases) {
    const Topology topology = Parse(c.expression);
    const Collective collective = CollectiveFor(c.name, c.kind, topology.num_ranks());
    const Schedule made = MustRun(c.name, topology, c.kind, {.chunks = c.chunks});
    for (size_t i = 0; i < made.transfers.size(); ++i) {
      SCOPED_TRACE(std::string(c.name) + " transfer " + std::to_string(i));
      const auto at = static_cast<std::ptrdiff_t>(i);
      Schedule lacking = made;
      lacking.transfers.erase(lacking.transfers.begin() + at);
      EXPECT_FALSE(Verify(topology, collective, lacking).verified());
      Schedule twice = made;
      twice.transfers.insert(twice.transfers.begin() + at, made.transfers[i]);
      EXPECT_FALSE(Verify(topology, collective, twice).verified());
      Schedule other = made;
      TransferOp& op = other.transfers[i].op;
      op = op == TransferOp::kCopy ? TransferOp::kReduce : TransferOp::kCopy;
      EXPECT_FALSE(Verify(topology, collective, other).verified());
    }
  }
}

TEST(RivalsProperty, InterruptionEndsTheWork) {
  const std::vector<std::tuple<const char*, const char*, Kind>> cases = {
      {"blueconnect", "torus(3,3)", Kind::kAllGather},
      {"themis", "torus(3,3)", Kind::kAllReduce},
      {"c-cube", "dgx1", Kind::kAllReduce},
      {"multitree", "torus(3,3)", Kind::kAllGather},
      {"tto", "mesh(3,3)", Kind::kAllReduce}};
  for (const auto& [name, expression, kind] : cases) {
    const Topology topology = Parse(expression);
    RequestCancel();
    const Result<Schedule> made =
        Synthesize(name, topology, CollectiveFor(name, kind, topology.num_ranks()));
    ResetCancel();
    ASSERT_FALSE(made.has_value()) << name;
    EXPECT_EQ(made.error().code, ErrorCode::kCancelled) << name;
  }
}

}  // namespace
}  // namespace tutti::classic_test

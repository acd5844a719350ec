// The competitors of the papers: worked examples, costs against their formulas, refusals, and every
// schedule proven on many networks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "baselines/dimensions.h"
#include "classic_support.h"

namespace tutti::classic_test {
namespace {

using ::testing::HasSubstr;
using Kind = CollectiveKind;

void ExpectRefused(std::string_view name, std::string_view expression, Kind kind,
                   std::string_view why, const SynthOptions& options = {}) {
  const Topology topology = Parse(expression);
  const Result<Schedule> made =
      Synthesize(name, topology, CollectiveFor(name, kind, topology.num_ranks()), options);
  ASSERT_FALSE(made.has_value()) << name << " on " << expression;
  EXPECT_THAT(made.error().message, HasSubstr(std::string(why))) << expression;
}

// --- Dimensions ----------------------------------------------------------------------------------

std::string Show(const std::vector<baselines::Dimension>& dims) {
  std::string text;
  for (const baselines::Dimension& dim : dims) {
    const char kind = dim.kind == baselines::DimensionKind::kRing   ? 'r'
                      : dim.kind == baselines::DimensionKind::kLine ? 'l'
                                                                    : 'o';
    text += kind + std::to_string(dim.length) + "/" + std::to_string(dim.stride) + "@" +
            std::to_string(dim.bandwidth / 1'000'000'000) + " ";
  }
  return text;
}

TEST(RivalsDimensions, AreReadFromGridsAndExpressions) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"torus(4,3)", "r4/3@100 r3/1@100 "},
      {"torus(4,2)", "r4/2@100 l2/1@50 "},
      {"mesh(2,1,5)", "l2/5@50 l5/1@50 "},
      {"mesh(5,8,bw=[35,80]GB/s)", "l5/8@35 l8/1@80 "},
      {"hypercube(2)", "o2/2@50 o2/1@50 "},
      {"hamming(2,3)", "o3/3@100 o3/1@100 "},
      {"rfs(2,4,8,bw=[200,120,50]GB/s)", "o2/32@200 o4/8@120 o8/1@50 "},
      {"unwind(rfs(4,2,3,bw=[200,120,50]GB/s),degree=2)", "r4/6@200 o2/3@120 o3/1@50 "},
      {"unwind(switch2d(8,4,bw=[300,24]GB/s),degree=1)", "o8/4@300 o4/1@24 "},
  };
  for (const auto& [expression, wanted] : cases) {
    const Result<std::vector<baselines::Dimension>> dims =
        baselines::DimensionsOf(Parse(expression), "x");
    ASSERT_TRUE(dims.has_value()) << expression << ": " << dims.error().message;
    EXPECT_EQ(Show(*dims), wanted) << expression;
  }
}

TEST(RivalsDimensions, OtherNetworksAreRefused) {
  for (const char* name : {"blueconnect", "themis"})
    for (const char* expression :
         {"dgx1", "genkautz(2,7)", "without(torus(4,4),links=1,seed=1)", "dragonfly(3,2)"})
      ExpectRefused(name, expression, Kind::kAllGather, "needs a network with dimensions");
}

// The expression says rfs, the links say something else.
TEST(RivalsDimensions, AnExpressionThatDoesNotFitIsRefused) {
  Topology::Builder builder(4);
  for (int32_t i = 0; i < 4; ++i) builder.AddDuplex(NodeId{i}, NodeId{(i + 1) % 4}, {});
  builder.AddDuplex(NodeId{0}, NodeId{2}, {});
  builder.SetExpression("rfs(2,2,1)");
  EXPECT_FALSE(baselines::DimensionsOf(*std::move(builder).Build(), "x").has_value());
  Topology::Builder lacking(6);
  for (int32_t i = 0; i < 6; ++i) lacking.AddDuplex(NodeId{i}, NodeId{(i + 1) % 6}, {});
  lacking.SetExpression("hamming(2,3)");
  EXPECT_FALSE(baselines::DimensionsOf(*std::move(lacking).Build(), "x").has_value());
}

// --- BlueConnect ---------------------------------------------------------------------------------

// mesh(2,2), one chunk. All-gather takes the last dimension first: every rank gives its shard to
// its neighbour in the row, then both shards of the row to the neighbour in the column.
TEST(BlueConnectTest, WorkedExample) {
  const Topology topology = Parse("mesh(2,2)");
  const Schedule made = MustRun("blueconnect", topology, Kind::kAllGather, {.chunks = 1});
  EXPECT_EQ(made.num_steps, 2);
  EXPECT_EQ(made.units_per_shard, 1);
  ASSERT_EQ(made.transfers.size(), 12u);
  for (const Transfer& transfer : made.transfers) {
    const int32_t tail = topology.tail(transfer.link).value;
    const int32_t head = topology.head(transfer.link).value;
    EXPECT_EQ(tail ^ head, transfer.step == 0 ? 1 : 2);
    if (transfer.step == 0) {
      EXPECT_EQ(transfer.shard.value, tail);
    } else {
      EXPECT_EQ(transfer.shard.value / 2, tail / 2);
    }
  }
}

// The sum over the dimensions of (length - 1) * shards held over the links into a rank: no other
// dimension's links help.
TEST(BlueConnectTest, CostIsTheSumOverTheDimensions) {
  struct Case {
    const char* expression;
    int32_t steps;
    Rational tb;  // of all-gather, in M / B
  };
  const std::vector<Case> cases = {
      // 3 shards over 2 links, then 3 * 4 over 2 links, of 16 shards and B = 4 links.
      {"torus(4,4)", 6, Rational(15, 2) * Rational(4, 16)},
      {"torus(3,5)", 6, (Rational(4, 2) + Rational(2 * 5, 2)) * Rational(4, 15)},
      {"torus(4,4,4)", 9, Rational(63, 2) * Rational(6, 64)},
      // The end of a line takes everything over one link.
      {"mesh(3,4)", 5, Rational(11) * Rational(4, 12)},
      {"hypercube(3)", 3, Rational(7) * Rational(3, 8)},
      {"hamming(2,3)", 2, Rational(4) * Rational(4, 9)},
      // Two ways round the ring, direct between four, one way round the unwound switch.
      {"unwind(rfs(2,4,3,bw_per_link=50GB/s),degree=1)", 4,
       Rational(2 + 1 * 3 + 1 * 12) * Rational(5, 24)},
  };
  for (const Case& c : cases) {
    const StepCost cost = CostOf("blueconnect", c.expression, Kind::kAllGather, {.chunks = 1});
    EXPECT_EQ(cost.tl, c.steps) << c.expression;
    EXPECT_EQ(cost.tb, c.tb) << c.expression << " " << cost.tb.ToDouble();
    const StepCost both = CostOf("blueconnect", c.expression, Kind::kAllReduce, {.chunks = 1});
    EXPECT_EQ(both.tl, 2 * c.steps) << c.expression;
    EXPECT_EQ(both.tb, c.tb + c.tb) << c.expression;
  }
}

// While a chunk is in the first dimension the next one is in the second.
TEST(BlueConnectTest, ChunksFollowEachOtherThroughTheDimensions) {
  const StepCost one = CostOf("blueconnect", "torus(4,4)", Kind::kAllGather, {.chunks = 1});
  const StepCost many = CostOf("blueconnect", "torus(4,4)", Kind::kAllGather, {.chunks = 8});
  EXPECT_EQ(many.tl, 3 * (8 + 1));
  EXPECT_LT(many.tb, one.tb);
  // The dimension that carries four times as much is busy in 8 of 9 phases.
  EXPECT_EQ(many.tb, Rational(4, 16) * (Rational(6) + Rational(3, 2) * Rational(1, 8)));
}

// --- Themis --------------------------------------------------------------------------------------

TEST(ThemisTest, WorkedExample) {  // two chunks on two equal dimensions: one order each
  const StepCost cost = CostOf("themis", "torus(4,4)", Kind::kAllGather, {.chunks = 2});
  EXPECT_EQ(cost.tl, 6);
  EXPECT_EQ(cost.tb, Rational(15, 16));
  EXPECT_EQ(CostOf("themis", "hypercube(2)", Kind::kAllReduce, {.chunks = 2}).tb,
            Rational(3, 4) * Rational(2));
}

// One chunk takes the dimensions as BlueConnect does.
TEST(ThemisTest, OneChunkIsBlueConnect) {
  for (const char* expression : {"torus(4,3)", "mesh(2,3,2)", "unwind(rfs(2,2,3),degree=1)"}) {
    const Topology topology = Parse(expression);
    Schedule ours = MustRun("themis", topology, Kind::kAllReduce, {.chunks = 1});
    ours.algorithm = "blueconnect";
    EXPECT_EQ(ours, MustRun("blueconnect", topology, Kind::kAllReduce, {.chunks = 1}));
  }
}

// More chunks balance better; on a symmetric torus they approach the limit, on a mesh they do not.
TEST(ThemisTest, ManyChunksApproachTheLimitOfSymmetricTori) {
  const auto tb = [](const char* name, const char* expression, int32_t chunks) {
    return CostOf(name, expression, Kind::kAllGather, {.chunks = chunks}).tb.ToDouble();
  };
  EXPECT_LT(tb("themis", "torus(3,3,3)", 4), tb("blueconnect", "torus(3,3,3)", 4));
  EXPECT_LT(tb("themis", "torus(3,3,3)", 24), tb("themis", "torus(3,3,3)", 4));
  EXPECT_LT(tb("themis", "torus(3,3,3)", 48), 1.15 * 26 / 27);
  EXPECT_GT(tb("themis", "mesh(3,3,3)", 48), 1.9 * 26 / 27);
}

// A slow dimension gets the small part of most chunks.
TEST(ThemisTest, BalancesUnequalBandwidths) {
  const char* expression = "torus(4,4,bw=[90,10]GB/s)";
  const Topology topology = Parse(expression);
  const auto seconds = [&](const char* name, int32_t chunks) {
    return AnalyticSeconds(topology,
                           MustRun(name, topology, Kind::kAllGather,
                                   {.chunks = chunks, .size_bytes = int64_t{1} << 30}),
                           int64_t{1} << 30)
        .ToDouble();
  };
  EXPECT_LT(seconds("themis", 16), seconds("blueconnect", 1));
}

// --- Every network -------------------------------------------------------------------------------

TEST(RivalsProperty, ChunksByDimensionsAreProvenOnManyNetworks) {
  for (const char* expression : {"torus(2)",
                                 "torus(7)",
                                 "torus(4,4)",
                                 "torus(5,3)",
                                 "torus(3,2,4)",
                                 "torus(1,4)",
                                 "mesh(2)",
                                 "mesh(5)",
                                 "mesh(3,4)",
                                 "mesh(2,3,2)",
                                 "hypercube(1)",
                                 "hypercube(4)",
                                 "hamming(2,3)",
                                 "hamming(3,2)",
                                 "rfs(3,2,2)",
                                 "unwind(rfs(3,2,4),degree=3)",
                                 "unwind(rfs(2,3,4),degree=2)",
                                 "rfs(4,3,1)",
                                 "switch2d(2,3)",
                                 "unwind(switch2d(4,3),degree=2)",
                                 "unwind(switch2d(5,1),degree=1)",
                                 "torus(4,3,bw=[10,40]GB/s,alpha=[1,2]us)"}) {
    const Topology topology = Parse(expression);
    for (const char* name : {"blueconnect", "themis"})
      for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce})
        for (int32_t chunks : {0, 1, 3, 5}) {
          SCOPED_TRACE(std::string(expression) + " " + name + " " + std::string(Name(kind)));
          const SynthOptions options{.chunks = chunks, .size_bytes = 1 << 20};
          if (topology.has_switches() && kind != Kind::kAllGather) {
            ExpectRefused(name, expression, kind, "replace them by links");
            continue;
          }
          const Schedule made = MustRun(name, topology, kind, options);
          EXPECT_EQ(made.units_per_shard % (chunks == 0 ? baselines::kDefaultChunks : chunks), 0);
          EXPECT_EQ(MustRun(name, topology, kind, options), made);
        }
  }
}

TEST(RivalsTest, FaultsAreNamed) {
  for (const char* name : {"blueconnect", "themis"}) {
    ExpectRefused(name, "torus(3,3)", Kind::kAllGather, "chunks must be at least 1",
                  {.chunks = -1});
    ExpectRefused(name, "torus(3,3)", Kind::kAllGather, "2^30", {.chunks = INT32_MAX});
    ExpectRefused(name, "torus(3,3)", Kind::kBroadcast, "makes no broadcast");
    const Topology topology = Parse("torus(3,3)");
    Collective::Options one;
    one.all_reduce_shards = 1;
    EXPECT_THAT(
        Synthesize(name, topology, *Collective::Make(Kind::kAllReduce, 9, one)).error().message,
        HasSubstr("over N shards"));
  }
}

}  // namespace
}  // namespace tutti::classic_test

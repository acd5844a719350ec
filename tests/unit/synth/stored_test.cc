// The stored schedules: optimal in the exact sense, on their graphs in any numbering, and nowhere
// else.
#include "tutti/synth/stored.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bfb_testing.h"
#include "tutti/base/random.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/bfb.h"
#include "tutti/topo/properties.h"

namespace tutti {
namespace {

struct KnownBase {
  const char* expression;
  int32_t steps, chunks;
};
// [direct-connect] Table 9; chunks: the fewest P for which P (N - 1) / d is whole.
const std::vector<KnownBase> kKnown{{"diamond", 3, 2},
                                    {"debruijn_mod(2,3)", 4, 2},
                                    {"debruijn_mod(2,4)", 5, 2},
                                    {"debruijn_mod(3,2)", 3, 3},
                                    {"debruijn_mod(4,2)", 3, 4}};

Result<Schedule> Stored(const Topology& topology, CollectiveKind kind,
                        const SynthOptions& options = {}) {
  const Result<const Synthesizer*> stored = FindSynthesizer("stored");
  EXPECT_TRUE(stored.has_value());
  return RunSynthesizer(**stored, topology, MustCollective(kind, topology.num_ranks()), options);
}

Rational BestTb(const Topology& topology) {
  return Rational(topology.num_ranks() - 1, topology.num_ranks());
}

void ExpectStoredProven(const Topology& topology, CollectiveKind kind, const Schedule& schedule,
                        int32_t tl, const Rational& tb) {
  const VerifyReport report =
      Verify(topology, MustCollective(kind, topology.num_ranks()), schedule);
  EXPECT_TRUE(report.verified()) << (report.verified() ? "" : report.violations.front().message);
  const StepCost cost = AnalyticCost(topology, schedule);
  EXPECT_EQ(cost.tl, tl);
  EXPECT_EQ(cost.tb, tb);
  EXPECT_EQ(schedule.algorithm, "stored");
  EXPECT_EQ(schedule.topology_fingerprint, topology.Fingerprint());
}

TEST(Stored, AllGatherReduceScatterAndAllReduceAreOptimal) {
  for (const KnownBase& known : kKnown)
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(std::string(known.expression) + (transposed ? " transposed" : ""));
      const Topology plain = Parse(known.expression);
      const Topology topology = transposed ? TransposeTopology(plain) : plain;
      const Rational best = BestTb(topology);
      for (const auto& [kind, times] :
           std::vector<std::pair<CollectiveKind, int32_t>>{{CollectiveKind::kAllGather, 1},
                                                           {CollectiveKind::kReduceScatter, 1},
                                                           {CollectiveKind::kAllReduce, 2}}) {
        SCOPED_TRACE(Name(kind));
        const Result<Schedule> schedule = Stored(topology, kind);
        ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
        ExpectStoredProven(topology, kind, *schedule, times * known.steps, Rational(times) * best);
        EXPECT_EQ(schedule->units_per_shard, known.chunks);
      }
    }
}

// [direct-connect] theorem 5: every link is equally busy in every step, and nothing is received
// twice.
TEST(Stored, EveryLinkCarriesTheSameInEveryStep) {
  for (const KnownBase& known : kKnown) {
    SCOPED_TRACE(known.expression);
    const Topology topology = Parse(known.expression);
    const Result<Schedule> schedule = Stored(topology, CollectiveKind::kAllGather);
    ASSERT_TRUE(schedule.has_value());
    std::map<std::pair<int32_t, LinkId>, int32_t> load;
    for (const Transfer& transfer : schedule->transfers)
      load[{transfer.step, transfer.link}] += transfer.units();
    EXPECT_EQ(load.size(), static_cast<size_t>(known.steps * topology.num_links()));
    for (const auto& [place, units] : load) EXPECT_EQ(units, load.at({place.first, LinkId{0}}));
    const auto ranks = static_cast<size_t>(topology.num_ranks());
    EXPECT_EQ(schedule->transfers.size(), ranks * (ranks - 1) * static_cast<size_t>(known.chunks));
  }
}

// Why they are stored: Table 9 says that breadth-first broadcast is not enough.
TEST(Stored, BreadthFirstBroadcastIsSlower) {
  const std::vector<std::pair<const char*, Rational>> bfb{{"diamond", Rational(1)},
                                                          {"debruijn_mod(2,3)", Rational(5, 4)},
                                                          {"debruijn_mod(2,4)", Rational(3, 2)},
                                                          {"debruijn_mod(3,2)", Rational(4, 3)},
                                                          {"debruijn_mod(4,2)", Rational(23, 16)}};
  for (const auto& [expression, tb] : bfb) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    const Result<BfbCost> cost = ComputeBfbCost(
        topology, MustCollective(CollectiveKind::kAllGather, topology.num_ranks()), {});
    ASSERT_TRUE(cost.has_value());
    EXPECT_EQ(cost->tb, tb);
    EXPECT_GT(*cost->tb, BestTb(topology));
  }
}

TEST(Stored, AnyNumberingAndAnyEqualLinksAreRecognised) {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    for (const KnownBase& known : kKnown) {
      SCOPED_TRACE(std::string(known.expression) + " seed " + std::to_string(seed));
      const Topology plain = Parse(known.expression);
      Random random(seed);
      std::vector<int32_t> number(static_cast<size_t>(plain.num_ranks()));
      std::iota(number.begin(), number.end(), 0);
      for (size_t i = number.size(); i > 1; --i) std::swap(number[i - 1], number[random.Below(i)]);
      Topology::Builder builder(plain.num_ranks());
      for (LinkId link : plain.Links())
        builder.AddLink(NodeId{number[plain.tail(link).index()]},
                        NodeId{number[plain.head(link).index()]},
                        {.bandwidth = 3'000'000'000, .alpha_ps = 7});
      const Topology topology = *std::move(builder).Build();
      for (const CollectiveKind kind :
           {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
        const Result<Schedule> schedule = Stored(topology, kind);
        ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
        ExpectStoredProven(topology, kind, *schedule, known.steps, BestTb(topology));
        EXPECT_EQ(*schedule, *Stored(topology, kind));
      }
    }
}

TEST(Stored, MoreChunksAreMultiples) {
  const Topology topology = Parse("diamond");
  const Result<Schedule> schedule = Stored(topology, CollectiveKind::kAllReduce, {.chunks = 6});
  ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
  EXPECT_EQ(schedule->units_per_shard, 6);
  ExpectStoredProven(topology, CollectiveKind::kAllReduce, *schedule, 6, Rational(7, 4));
  for (const int32_t chunks : {3, 1, -2}) {
    const Result<Schedule> odd = Stored(topology, CollectiveKind::kAllGather, {.chunks = chunks});
    ASSERT_FALSE(odd.has_value()) << chunks;
    EXPECT_EQ(odd.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(odd.error().message.find("2 chunks per shard"), std::string::npos);
  }
}

TEST(Stored, OtherNetworksAreRefusedWithTheReason) {
  struct Row {
    const char *expression, *reason;
  };
  for (const Row& row : std::vector<Row>{{"ring(8)", "none of the graphs known"},
                                         {"hypercube(3)", "none of the graphs known"},
                                         {"diamond(parallel=2)", "none of the graphs known"},
                                         {"uniring(2,8)", "none of the graphs known"},
                                         {"debruijn(2,3)", "self-loops"},
                                         {"switch(8)", "switches"},
                                         {"mesh(3,3,bw=[1,2]GB/s)", "not all alike"}}) {
    SCOPED_TRACE(row.expression);
    const Result<Schedule> schedule = Stored(Parse(row.expression), CollectiveKind::kAllGather);
    ASSERT_FALSE(schedule.has_value());
    EXPECT_EQ(schedule.error().code, ErrorCode::kInfeasible);
    EXPECT_NE(schedule.error().message.find(row.reason), std::string::npos)
        << schedule.error().message;
    EXPECT_NE(schedule.error().message.find("debruijn_mod(4,2)"), std::string::npos);
  }
  const Result<Schedule> broadcast =
      MakeStored(Parse("diamond"), MustCollective(CollectiveKind::kBroadcast, 8), {});
  ASSERT_FALSE(broadcast.has_value());
  EXPECT_EQ(broadcast.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Stored(Parse("diamond"), CollectiveKind::kBroadcast).error().code,
            ErrorCode::kInfeasible);
}

struct Figure {
  const char* expression;
  double f;  // as Table 7 prints it
  int32_t diameter;
};

// Some value between the proven limits is printed so.
void ExpectPrints(const Figure& figure, double half_a_digit) {
  SCOPED_TRACE(figure.expression);
  const Topology topology = Parse(figure.expression);
  EXPECT_EQ(Diameter(topology), figure.diameter);
  ConcurrentFlowOptions options;
  options.gap = 2e-4;
  const Result<ConcurrentFlow> flow = SolveConcurrentFlow(topology, options);
  ASSERT_TRUE(flow.has_value()) << flow.error().message;
  ASSERT_TRUE(CheckConcurrentFlow(topology, *flow).has_value());
  EXPECT_LE(flow->gap(), options.gap);
  EXPECT_GE(flow->f_upper.ToDouble(), figure.f - half_a_digit);
  EXPECT_LE(flow->f_lower.ToDouble(), figure.f + half_a_digit);
}

TEST(Stored, GraphsHaveTheFlowValuesOfTable7) {
  ExpectPrints({"power(diamond,2)", 1.87e-2, 6}, 5e-5);
  ExpectPrints({"line(power(diamond,2))", 3.62e-3, 7}, 5e-6);
  ExpectPrints({"line(debruijn_mod(4,2))", 2.21e-2, 4}, 5e-5);
  ExpectPrints({"line(debruijn_mod(4,2),2)", 4.10e-3, 5}, 5e-6);
}

TEST(StoredSlow, LargeGraphsHaveTheFlowValuesOfTable7) {
  ExpectPrints({"power(debruijn_mod(2,4),2)", 2.94e-3, 8}, 5e-6);
  ExpectPrints({"line(power(diamond,2),2)", 7.34e-4, 8}, 5e-7);
  ExpectPrints({"line(power(debruijn_mod(2,4),2))", 6.18e-4, 9}, 5e-7);
}

}  // namespace
}  // namespace tutti

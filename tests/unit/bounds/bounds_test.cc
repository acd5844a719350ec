#include "tutti/bounds/bounds.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "networks.h"
#include "support/build.h"
#include "tutti/base/parallel.h"
#include "tutti/lp/linear_program.h"

namespace tutti {
namespace {

using test_support::MustMake;
using Kind = CollectiveKind;
using namespace testing_networks;

Bounds MustBound(const Topology& topology, const Collective& collective) {
  Result<Bounds> bounds = ComputeBounds(topology, collective);
  if (!bounds) {
    ADD_FAILURE() << bounds.error().message;
    return {};
  }
  return *bounds;
}

Bounds BoundsOf(const Plain& plain, Kind kind, Collective::Options options = {}) {
  return MustBound(MustBuild(plain), MustMake(kind, plain.num_ranks, std::move(options)));
}

// --- The figures of the papers and of hand calculation -----------------------------------------

struct CutRow {
  const char* name;
  Plain plain;
  Rational shards;  // seconds a shard at one byte a second
};

class AllGatherCutValues : public testing::TestWithParam<CutRow> {};

TEST_P(AllGatherCutValues, AreExact) {
  const CutRow& row = GetParam();
  const Rational expected = row.shards / Rational(row.plain.num_ranks);
  for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter}) {
    const Bounds bounds = BoundsOf(row.plain, kind);
    EXPECT_EQ(bounds.seconds_per_byte, expected) << bounds.seconds_per_byte.ToString();
    ASSERT_TRUE(bounds.cut.has_value());
    EXPECT_EQ(bounds.cut->shards_out / bounds.cut->capacity_out, row.shards);
  }
  // Reduce-scatter followed by all-gather takes both; these networks are balanced.
  EXPECT_EQ(BoundsOf(row.plain, Kind::kAllReduce).rsag_seconds_per_byte, expected * 2);
}

// Two boxes of 4 ranks, all-to-all inside at 10, each rank with one cable of 1 to its twin.
Plain TwoBoxes() {
  Plain plain{.num_ranks = 8};
  for (int32_t box : {0, 4})
    for (int32_t a = 0; a < 4; ++a)
      for (int32_t b = 0; b < a; ++b) AddCable(plain, box + a, box + b, {10, 1});
  for (int32_t a = 0; a < 4; ++a) AddCable(plain, a, a + 4, {1, 1});
  return plain;
}

INSTANTIATE_TEST_SUITE_P(
    All, AllGatherCutValues,
    testing::Values(CutRow{"UniRing8", UniRing(8), 7}, CutRow{"Ring8", Grid({8}, true), {7, 2}},
                    CutRow{"Path4", Grid({4}, false), 3}, CutRow{"Mesh3x3", Grid({3, 3}, false), 4},
                    CutRow{"Mesh4x4", Grid({4, 4}, false), {15, 2}},
                    CutRow{"Torus3x3", Grid({3, 3}, true), 2},
                    CutRow{"Torus4x4", Grid({4, 4}, true), {15, 4}},
                    CutRow{"Cube3", Hypercube(3), {7, 3}}, CutRow{"Cube4", Hypercube(4), {15, 4}},
                    CutRow{"K8", Complete(8), 1}, CutRow{"K44", Bipartite(4), {7, 4}},
                    CutRow{"Star8", Star(8), 7},
                    // One rank draws 7 through 31; a box draws 4 through 4.
                    CutRow{"TwoBoxes", TwoBoxes(), 1}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(BoundsTest, TheCutNamesTheNodesAndTheReason) {
  const Bounds bounds = BoundsOf(TwoBoxes(), Kind::kAllGather);
  ASSERT_TRUE(bounds.cut.has_value());
  EXPECT_EQ(bounds.cut->inside.size(), 4u);
  EXPECT_EQ(bounds.cut->shards_out, Rational(4));
  EXPECT_EQ(bounds.cut->capacity_out, Rational(4));
  EXPECT_EQ(bounds.bandwidth_reason, "cut of 4 of 8 ranks, 4 of 8 shards must leave");
  EXPECT_EQ(bounds.tb, Rational(31, 8));
}

TEST(BoundsTest, TwoBoxesAsTheGuideWorksThemOut) {
  const Bounds reduce = BoundsOf(TwoBoxes(), Kind::kAllReduce);
  EXPECT_EQ(reduce.seconds_per_byte, Rational(1, 4));
  EXPECT_EQ(reduce.ideal_seconds_per_byte, Rational(2 * 7, 8 * 31));
  const Bounds exchange = BoundsOf(TwoBoxes(), Kind::kAllToAll);
  EXPECT_EQ(exchange.f_upper, Rational(1, 4));
  EXPECT_EQ(exchange.seconds_per_byte, Rational(1, 2));
}

TEST(BoundsTest, AllReduceOnAPathIsNotTwiceTheAllGather) {
  const Bounds bounds = BoundsOf(Grid({4}, false), Kind::kAllReduce);
  EXPECT_EQ(bounds.seconds_per_byte, Rational(1));
  EXPECT_EQ(bounds.rsag_seconds_per_byte, Rational(3, 2));
  EXPECT_EQ(bounds.steps, 3);
  EXPECT_EQ(bounds.latency_ps, 30);
}

TEST(BoundsTest, AllReduceIsLimitedByTheTotalCapacityOfARegularNetwork) {
  const Bounds bounds = BoundsOf(Grid({4, 4}, true), Kind::kAllReduce);
  EXPECT_EQ(bounds.seconds_per_byte, Rational(2 * 15, 64));
  EXPECT_EQ(bounds.tb, Rational(2 * 15, 16));
  EXPECT_FALSE(bounds.cut.has_value());
  EXPECT_EQ(bounds.ideal_seconds_per_byte, Rational(2 * 15, 64));
}

TEST(BoundsTest, AllReduceAsOneShardHasTheSameLimit) {
  for (const Plain& plain : {Grid({4}, false), Grid({3, 3}, true), Star(4)})
    EXPECT_EQ(BoundsOf(plain, Kind::kAllReduce, {.all_reduce_shards = 1}).seconds_per_byte,
              BoundsOf(plain, Kind::kAllReduce).seconds_per_byte);
}

TEST(BoundsTest, RootedCollectivesOnAPath) {
  // 0 - 1 - 2 - 3, root 1: each end is fed by one cable; two shards go right, one goes left.
  const Plain path = Grid({4}, false);
  for (Kind kind : {Kind::kBroadcast, Kind::kReduce}) {
    const Bounds bounds = BoundsOf(path, kind, {.root = 1});
    EXPECT_EQ(bounds.seconds_per_byte, Rational(1));
    EXPECT_EQ(bounds.steps, 2);
    EXPECT_EQ(bounds.latency_ps, 20);
  }
  for (Kind kind : {Kind::kScatter, Kind::kGather}) {
    const Bounds bounds = BoundsOf(path, kind, {.root = 1});
    EXPECT_EQ(bounds.seconds_per_byte, Rational(2, 4));
    EXPECT_EQ(bounds.cut->shards_out, Rational(2));
  }
  EXPECT_EQ(BoundsOf(path, Kind::kScatter).seconds_per_byte, Rational(3, 4));
}

TEST(BoundsTest, RootedLatencyRunsWithTheTraffic) {
  const Plain ring = UniRing(5);
  EXPECT_EQ(BoundsOf(ring, Kind::kBroadcast).steps, 4);
  Plain shortcut = ring;
  shortcut.links.push_back({0, 4, kUnit});
  EXPECT_EQ(BoundsOf(shortcut, Kind::kBroadcast).steps, 3);
  EXPECT_EQ(BoundsOf(shortcut, Kind::kReduce).steps, 4);
  EXPECT_EQ(BoundsOf(shortcut, Kind::kReduce, {.root = 4}).steps, 3);
}

TEST(BoundsTest, BroadcastOfATorusSplitsOverItsFourLinks) {
  EXPECT_EQ(BoundsOf(Grid({4, 4}, true), Kind::kBroadcast).seconds_per_byte, Rational(1, 4));
}

TEST(BoundsTest, LatencyTakesTheCheapestWayNotTheShortest) {
  Plain ring = Grid({3}, true);
  for (Link& link : ring.links)
    if (link.tail + link.head == 1) link.spec.alpha_ps = 1000;  // 0 <-> 1
  const Bounds bounds = BoundsOf(ring, Kind::kAllGather);
  EXPECT_EQ(bounds.steps, 1);
  EXPECT_EQ(bounds.latency_ps, 20);
}

TEST(BoundsTest, SelfLoopsCountInTheUnitOnly) {
  Plain ring = UniRing(4);
  const Bounds without = BoundsOf(ring, Kind::kAllGather);
  for (int32_t i = 0; i < 4; ++i) ring.links.push_back({i, i, kUnit});
  const Bounds with = BoundsOf(ring, Kind::kAllGather);
  EXPECT_EQ(with.seconds_per_byte, without.seconds_per_byte);
  EXPECT_EQ(with.tb, without.tb * 2);
}

TEST(BoundsTest, BandwidthCountsBehindOneAlphaAndBehindAllOfThemInStepsWithBarriers) {
  // 8 bytes: 3 shards of 2 bytes over 4 links; diameter 2 of 10 ps.
  const Rational alpha(10, int64_t{1'000'000'000'000});
  const Bounds ring = BoundsOf(Grid({4}, true), Kind::kAllGather);
  EXPECT_EQ(ring.Limit(8), Rational(3) + alpha);
  EXPECT_EQ(ring.StepLimit(8), Rational(3) + alpha * Rational(2));
  EXPECT_EQ(ring.Limit(0), alpha * Rational(2));
  const Bounds path = BoundsOf(Grid({4}, false), Kind::kAllGather);
  EXPECT_EQ(path.Limit(8), Rational(6) + alpha);
  EXPECT_EQ(path.StepLimit(8), Rational(6) + alpha * Rational(3));
}

TEST(BoundsTest, OneRankNeedsNothing) {
  for (Kind kind : {Kind::kAllGather, Kind::kAllReduce, Kind::kBroadcast, Kind::kAllToAll}) {
    const Bounds bounds = BoundsOf(Plain{}, kind);
    EXPECT_TRUE(bounds.seconds_per_byte.is_zero());
    EXPECT_TRUE(bounds.tb.is_zero());
    EXPECT_EQ(bounds.steps, 0);
    EXPECT_EQ(bounds.Seconds(1000), 0);
    EXPECT_EQ(bounds.StepLimit(1000), Rational(0));
  }
}

TEST(BoundsTest, RefusesACollectiveOverAnotherNumberOfRanks) {
  const Result<Bounds> bounds = ComputeBounds(MustBuild(UniRing(4)), MustMake(Kind::kAllGather, 5));
  ASSERT_FALSE(bounds.has_value());
  EXPECT_EQ(bounds.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(bounds.error().message, "the collective is over 5 ranks, the topology has 4");
}

TEST(BoundsTest, HugeBandwidthsStayExact) {
  constexpr int64_t kHuge = (int64_t{1} << 50) - 1;
  Plain plain{.num_ranks = 3};
  AddCable(plain, 0, 1, {kHuge, 0});
  AddCable(plain, 1, 2, {kHuge - 1, 0});
  for (int32_t parallel = 0; parallel < 5000; ++parallel) AddCable(plain, 0, 1, {kHuge, 0});
  const Bounds bounds = BoundsOf(plain, Kind::kAllGather);
  EXPECT_EQ(bounds.seconds_per_byte, Rational(2, 3) / Rational(kHuge - 1));
  EXPECT_EQ(BoundsOf(plain, Kind::kBroadcast).seconds_per_byte, Rational(1) / Rational(kHuge - 1));
  EXPECT_EQ(BoundsOf(plain, Kind::kScatter, {.root = 2}).seconds_per_byte,
            Rational(2, 3) / Rational(kHuge - 1));
}

TEST(BoundsTest, LargeAlphasSaturate) {
  Plain path = Grid({5000}, false);
  for (Link& link : path.links) link.spec.alpha_ps = 1'000'000'000'000'000;
  EXPECT_GT(BoundsOf(path, Kind::kBroadcast).latency_ps, int64_t{1} << 61);
  path.links[0].spec.alpha_ps -= 1;
  EXPECT_GT(BoundsOf(path, Kind::kBroadcast).latency_ps, int64_t{1} << 61);
}

// --- All-to-all ----------------------------------------------------------------------------------

TEST(BoundsTest, AllToAllFlowOfTori) {
  const Bounds torus = BoundsOf(Grid({8, 8}, true), Kind::kAllToAll);
  EXPECT_EQ(torus.f_upper, Rational(1, 64));
  EXPECT_EQ(torus.seconds_per_byte, Rational(1));
  EXPECT_EQ(BoundsOf(Grid({16, 16}, true), Kind::kAllToAll).f_upper, Rational(1, 512));
  EXPECT_EQ(BoundsOf(Complete(5), Kind::kAllToAll).f_upper, Rational(1));
  EXPECT_EQ(BoundsOf(Star(5), Kind::kAllToAll).f_upper, Rational(1, 4));
}

TEST(BoundsTest, ACutCanLimitAllToAll) {
  // The middle of a mesh: 72 x 72 pairs each way over 12 cables.
  const Bounds bounds = BoundsOf(Grid({12, 12}, false), Kind::kAllToAll);
  EXPECT_EQ(bounds.f_upper, Rational(12, 72 * 72));
  ASSERT_TRUE(bounds.cut.has_value());
  EXPECT_EQ(bounds.cut->inside.size(), 72u);
  EXPECT_EQ(bounds.cut->shards_out, Rational(72 * 72));
  EXPECT_EQ(bounds.cut->capacity_out, Rational(12));
  EXPECT_EQ(bounds.bandwidth_reason, "cut of 72 of 144 ranks");
}

TEST(BoundsTest, FlowIsInTheSmallestLinksBandwidth) {
  Plain ring = UniRing(3);
  for (Link& link : ring.links) link.spec.bandwidth = 10;
  ring.links[0].spec.bandwidth = 20;
  // Pairs at distance 1 and 2: each link of 10 carries 3 flows.
  EXPECT_EQ(BoundsOf(ring, Kind::kAllToAll).f_upper, Rational(1, 3));
}

TEST(BoundsTest, AllToAllFlowOfGeneralizedKautzGraphs) {
  // Known from the linear program to ten digits, and by other methods to four.
  const double small = BoundsOf(GenKautz(4, 50), Kind::kAllToAll).f_upper->ToDouble();
  EXPECT_GE(small, 0.03083989501);
  EXPECT_LE(small, 0.0308398951 * (1 + 1e-6));
  const double middle = BoundsOf(GenKautz(4, 100), Kind::kAllToAll).f_upper->ToDouble();
  EXPECT_GE(middle, 0.01235657546);
  EXPECT_LE(middle, 0.01235657546 * 1.02);
  const double large = BoundsOf(GenKautz(4, 1000), Kind::kAllToAll).f_upper->ToDouble();
  EXPECT_GE(large, 8.420422e-4);
  EXPECT_LE(large, 8.421231e-4 * 1.01);
}

TEST(BoundsTest, SymmetryOfLargeNetworksChangesNothing) {
  // Large enough that one rank of each orbit stands for the others. Half the rings of the torus
  // are twice as fast: rows alternate, which leaves two orbits.
  const int32_t side = 60;
  Plain torus = Grid({side, side}, true);
  const Bounds even = BoundsOf(torus, Kind::kAllToAll);
  EXPECT_EQ(even.steps, 60);
  EXPECT_EQ(even.f_upper, Rational(4 * side * side, int64_t{side} * side * side * side * 30));
  for (Link& link : torus.links) {
    const bool in_row = link.tail / side == link.head / side;
    if (in_row && link.tail / side % 2 == 0) link.spec = {.bandwidth = 2, .alpha_ps = 1};
  }
  const Bounds uneven = BoundsOf(torus, Kind::kAllToAll);
  EXPECT_EQ(uneven.steps, 60);
  // Between odd rows 30 apart: 30 hops across the rows, and 30 along an even row on the way.
  EXPECT_EQ(uneven.latency_ps, 30 * 10 + 30);
  EXPECT_GE(*uneven.f_upper, *even.f_upper);
}

TEST(BoundsTest, DemandsAreScaledToMeanOne) {
  // Only 0 -> 1 and 1 -> 0 speak, 60 bytes each way over one cable of 1 byte/s.
  Plain path = Grid({3}, false);
  const std::vector<int64_t> demand = {0, 60, 0, 60, 0, 0, 0, 0, 0};
  const Bounds bounds = BoundsOf(path, Kind::kAllToAllV, {.demand = demand});
  // M is 60, what the busiest rank sends. The mean demand is 20, so f = 1/3.
  EXPECT_EQ(bounds.seconds_per_byte, Rational(1));
  EXPECT_EQ(bounds.f_upper, Rational(1, 3));
  EXPECT_EQ(bounds.steps, 1);
  std::vector<int64_t> uniform(9, 7);
  const Bounds even = BoundsOf(path, Kind::kAllToAllV, {.demand = uniform});
  const Bounds plain = BoundsOf(path, Kind::kAllToAll);
  EXPECT_EQ(even.f_upper, plain.f_upper);
  EXPECT_EQ(even.seconds_per_byte, plain.seconds_per_byte);
}

TEST(BoundsTest, ARankThatSendsMostLimitsAllToAllV) {
  Plain complete = Complete(4);
  std::vector<int64_t> demand(16, 0);
  for (size_t to = 1; to < 4; ++to) demand[to] = 100;
  const Bounds bounds = BoundsOf(complete, Kind::kAllToAllV, {.demand = demand});
  EXPECT_EQ(bounds.seconds_per_byte, Rational(1, 3));
}

// --- Oracle: all cuts of small random networks ---------------------------------------------------

struct Ratio {
  std::optional<Rational> all_gather, reduce_scatter, separating, broadcast, scatter;
};

void Raise(std::optional<Rational>& best, const Rational& value) {
  if (!best || *best < value) best = value;
}

Ratio BruteForce(const Topology& topology, NodeId root) {
  Ratio best;
  const int32_t n = topology.num_nodes();
  for (uint32_t bits = 1; bits + 1 < (1u << n); ++bits) {
    const auto inside = [bits](NodeId node) { return (bits >> node.value & 1) != 0; };
    int64_t ranks = 0, capacity = 0;
    for (NodeId rank : topology.Ranks()) ranks += inside(rank);
    for (LinkId link : topology.Links())
      if (inside(topology.tail(link)) && !inside(topology.head(link)))
        capacity += topology.bandwidth(link);
    const int64_t outside = topology.num_ranks() - ranks;
    if (outside > 0) Raise(best.all_gather, Rational(ranks, capacity));
    if (ranks > 0) Raise(best.reduce_scatter, Rational(outside, capacity));
    if (ranks > 0 && outside > 0) Raise(best.separating, Rational(1, capacity));
    if (inside(root) && outside > 0) {
      Raise(best.broadcast, Rational(1, capacity));
      Raise(best.scatter, Rational(outside, capacity));
    }
  }
  return best;
}

void ExpectCertified(const Topology& topology, const Bounds& bounds, int32_t num_shards) {
  ASSERT_TRUE(bounds.cut.has_value());
  std::vector<bool> inside(static_cast<size_t>(topology.num_nodes()), false);
  for (NodeId node : bounds.cut->inside) inside[node.index()] = true;
  int64_t capacity = 0;
  for (LinkId link : topology.Links())
    if (inside[topology.tail(link).index()] && !inside[topology.head(link).index()])
      capacity += topology.bandwidth(link);
  EXPECT_EQ(bounds.cut->capacity_out, Rational(capacity));
  EXPECT_EQ(bounds.seconds_per_byte,
            bounds.cut->shards_out / (bounds.cut->capacity_out * Rational(num_shards)));
}

// Bytes a second by the first who knows (src/bounds/telling_bound.h) where there are no switches,
// with every cut in the program from the start.
Rational MostToldByAllCuts(const Topology& topology, const std::vector<int32_t>& part,
                           int32_t num_parts) {
  struct Arc {
    int32_t tail, head, before, after;
  };
  double all = 0;
  for (LinkId link : topology.Links()) all += static_cast<double>(topology.bandwidth(link));
  LinearProgram program(LinearProgram::Goal::kMaximize);
  std::vector<int32_t> first;
  for (int32_t p = 0; p < num_parts; ++p) first.push_back(program.AddColumn(0, all, 1));
  std::vector<Arc> arcs;
  for (LinkId link : topology.Links()) {
    const int32_t tail = part[topology.tail(link).index()];
    const int32_t head = part[topology.head(link).index()];
    if (tail == head) continue;
    const auto most = static_cast<double>(topology.bandwidth(link));
    arcs.push_back({tail, head, program.AddColumn(0, most, 0), program.AddColumn(0, most, 0)});
    program.AddRow(-LinearProgram::kNoLimit, most,
                   {{arcs.back().before, 1}, {arcs.back().after, 1}});
  }
  for (uint32_t bits = 1; bits + 1 < (1u << num_parts); ++bits) {
    const auto inside = [bits](int32_t p) { return (bits >> p & 1) != 0; };
    std::vector<LinearProgram::Entry> out;
    for (const Arc& arc : arcs)
      if (inside(arc.tail) && !inside(arc.head)) out.push_back({arc.before, 1});
    for (int32_t p = 0; p < num_parts; ++p)
      if (!inside(p)) out.push_back({first[static_cast<size_t>(p)], -1});
    program.AddRow(0, LinearProgram::kNoLimit, out);
  }
  for (int32_t p = 0; p < num_parts; ++p) {
    std::vector<LinearProgram::Entry> in;
    for (const Arc& arc : arcs)
      if (arc.head == p) in.push_back({arc.after, 1});
    for (int32_t other = 0; other < num_parts; ++other)
      if (other != p) in.push_back({first[static_cast<size_t>(other)], -1});
    program.AddRow(0, LinearProgram::kNoLimit, in);
  }
  EXPECT_TRUE(program.Solve().has_value());
  const Result<ExactLpSolution> exact = program.SolveExactly();
  EXPECT_TRUE(exact.has_value()) << (exact ? "" : exact.error().message);
  return exact ? exact->objective : Rational(1);
}

// The limit of all-reduce: cuts, partitions, and the first who knows, each by trying all there are.
void ExpectTheLimitOfAllReduce(const Plain& plain, const Rational& by_cuts, const Bounds& reduce) {
  if (plain.num_switches > 0) {
    EXPECT_EQ(reduce.seconds_per_byte, by_cuts);
    return;
  }
  const Topology there = MustBuild(plain), back = MustBuild(Transposed(plain));
  const auto by_telling = [&](const std::vector<int32_t>& part, int32_t num_parts) {
    return Rational(1) / std::min(MostToldByAllCuts(there, part, num_parts),
                                  MostToldByAllCuts(back, part, num_parts));
  };
  std::vector<int32_t> alone;
  for (int32_t rank = 0; rank < plain.num_ranks; ++rank) alone.push_back(rank);
  const Rational least = std::max(by_cuts, by_telling(alone, plain.num_ranks));
  if (reduce.seconds_per_byte == least) return;
  // Of ranks that are merged it may be tighter; which of them are tried the bound decides.
  EXPECT_GT(reduce.seconds_per_byte, least);
  bool is_one_of_them = false;
  ForEachPartition(plain.num_ranks, [&](const std::vector<int32_t>& part, int32_t num_parts) {
    if (num_parts > 1 && !is_one_of_them)
      is_one_of_them = by_telling(part, num_parts) == reduce.seconds_per_byte;
  });
  EXPECT_TRUE(is_one_of_them);
}

TEST(BoundsProperty, CutsAreTheBestOfAllCuts) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    const Plain plain = RandomNetwork(seed);
    const Topology topology = MustBuild(plain);
    const int32_t n = plain.num_ranks;
    const int32_t root = static_cast<int32_t>(seed % static_cast<uint64_t>(n));
    const Ratio best = BruteForce(topology, NodeId{root});
    const Ratio back = BruteForce(MustBuild(Transposed(plain)), NodeId{root});
    const auto check = [&](Kind kind, const Rational& shards) {
      const Collective collective = MustMake(kind, n, {.root = root});
      const Bounds bounds = MustBound(topology, collective);
      EXPECT_EQ(bounds.seconds_per_byte, shards / Rational(collective.num_shards()))
          << Name(kind) << " " << topology.ToText();
      ExpectCertified(topology, bounds, collective.num_shards());
    };
    check(Kind::kAllGather, *best.all_gather);
    check(Kind::kReduceScatter, *best.reduce_scatter);
    check(Kind::kBroadcast, *best.broadcast);
    check(Kind::kReduce, *back.broadcast);
    check(Kind::kScatter, *best.scatter);
    check(Kind::kGather, *back.scatter);

    const Bounds reduce = MustBound(topology, MustMake(Kind::kAllReduce, n));
    ExpectTheLimitOfAllReduce(
        plain, std::max(*best.separating, TightestPartitionOfAll(topology) * Rational(2)), reduce);
    EXPECT_LE(reduce.seconds_per_byte, *reduce.rsag_seconds_per_byte);
    EXPECT_EQ(reduce.rsag_seconds_per_byte,
              (*best.all_gather + *best.reduce_scatter) / Rational(n));
  }
}

TEST(BoundsProperty, TheNumberOfThreadsDoesNotMatter) {
  std::vector<Bounds> seen;
  for (const int threads : {1, 2, 5}) {
    SetNumThreads(threads);
    seen.push_back(BoundsOf(GenKautz(3, 90), Kind::kAllToAll));
    seen.push_back(BoundsOf(GenKautz(3, 30), Kind::kAllToAll));
  }
  SetNumThreads(0);
  for (size_t i = 2; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].f_upper, seen[i % 2].f_upper);
    EXPECT_EQ(seen[i].steps, seen[i % 2].steps);
  }
}

// Bellman and Ford's way, as slow and as plain as it gets.
int64_t WorstDistance(const Topology& topology, bool in_alphas) {
  const auto n = static_cast<size_t>(topology.num_nodes());
  int64_t worst = 0;
  for (NodeId source : topology.Ranks()) {
    std::vector<int64_t> distance(n, 1'000'000);
    distance[source.index()] = 0;
    for (size_t round = 0; round < n; ++round)
      for (LinkId link : topology.Links())
        distance[topology.head(link).index()] = std::min(
            distance[topology.head(link).index()],
            distance[topology.tail(link).index()] + (in_alphas ? topology.alpha_ps(link) : 1));
    for (NodeId rank : topology.Ranks()) worst = std::max(worst, distance[rank.index()]);
  }
  return worst;
}

TEST(BoundsProperty, LatencyIsTheWorstOfTheShortestWays) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = MustBuild(RandomNetwork(seed));
    for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce, Kind::kAllToAll}) {
      const Bounds bounds = MustBound(topology, MustMake(kind, topology.num_ranks()));
      EXPECT_EQ(bounds.steps, WorstDistance(topology, false));
      EXPECT_EQ(bounds.latency_ps, WorstDistance(topology, true));
    }
  }
}

// The concurrent flow of [alltoall-mcf] (6) to (9), with flows on links: another program than the
// one the limit comes from. In bytes a second for a pair of mean demand.
double FlowByLinks(const Topology& topology, const Collective& collective) {
  const int32_t n = topology.num_ranks();
  double total = 0;
  const auto weight = [&](int32_t s, int32_t t) {
    return s == t ? 0.0 : static_cast<double>(collective.weight(ShardId{s * n + t}));
  };
  for (int32_t s = 0; s < n; ++s)
    for (int32_t t = 0; t < n; ++t) total += weight(s, t);
  LinearProgram lp(LinearProgram::Goal::kMaximize);
  const int32_t flow = lp.AddColumn(0, 1e9, 1);
  std::vector<std::vector<LinearProgram::Entry>> on_link(static_cast<size_t>(topology.num_links()));
  for (int32_t s = 0; s < n; ++s) {
    std::vector<std::vector<LinearProgram::Entry>> at_node(
        static_cast<size_t>(topology.num_nodes()));
    for (LinkId link : topology.Links()) {
      const int32_t column = lp.AddColumn(0, 1e9, 0);
      on_link[link.index()].push_back({column, 1});
      at_node[topology.head(link).index()].push_back({column, 1});
      at_node[topology.tail(link).index()].push_back({column, -1});
    }
    for (NodeId node : topology.Nodes()) {
      if (node.value == s) continue;
      auto& row = at_node[node.index()];
      if (topology.is_rank(node))
        row.push_back({flow, -weight(s, node.value) * n * (n - 1) / total});
      lp.AddRow(0, LinearProgram::kNoLimit, row);
    }
  }
  for (LinkId link : topology.Links())
    lp.AddRow(0, static_cast<double>(topology.bandwidth(link)), on_link[link.index()]);
  const Result<LpSolution> solution = lp.Solve();
  if (!solution) {
    ADD_FAILURE() << solution.error().message;
    return 0;
  }
  return solution->objective;
}

TEST(BoundsProperty, AllToAllLimitIsTheConcurrentFlow) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Topology topology = MustBuild(RandomNetwork(seed));
    const int32_t n = topology.num_ranks();
    Random random(seed);
    Collective::Options options;
    for (int32_t pair = 0; pair < n * n; ++pair)
      options.demand.push_back(static_cast<int64_t>(random.Below(4) * random.Below(1000)));
    options.demand[1] += 1;
    int64_t least = topology.bandwidth(LinkId{0});
    for (LinkId link : topology.Links()) least = std::min(least, topology.bandwidth(link));
    for (const Collective& collective :
         {MustMake(Kind::kAllToAll, n), MustMake(Kind::kAllToAllV, n, options)}) {
      const Bounds bounds = MustBound(topology, collective);
      const double proven = bounds.f_upper->ToDouble() * static_cast<double>(least);
      const double flow = FlowByLinks(topology, collective);
      EXPECT_GE(proven, flow * (1 - 1e-7));
      EXPECT_LE(proven, flow * (1 + 1e-6));
    }
  }
}

// --- Metamorphic ---------------------------------------------------------------------------------

constexpr Kind kAllKinds[] = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                              Kind::kBroadcast, Kind::kReduce,        Kind::kGather,
                              Kind::kScatter,   Kind::kAllToAll};

TEST(BoundsProperty, ScaledBandwidthsScaleTheLimits) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Plain plain = RandomNetwork(seed);
    Plain scaled = plain;
    for (Link& link : scaled.links) link.spec.bandwidth *= 35;
    for (Kind kind : kAllKinds) {
      const Bounds before = BoundsOf(plain, kind), after = BoundsOf(scaled, kind);
      EXPECT_EQ(after.seconds_per_byte * 35, before.seconds_per_byte) << Name(kind);
      EXPECT_EQ(after.tb, before.tb);
      EXPECT_EQ(after.f_upper, before.f_upper);
    }
  }
}

TEST(BoundsProperty, NamesOfRanksDoNotMatter) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Plain plain = RandomNetwork(seed);
    Plain renamed = plain;
    const auto rename = [&plain](int32_t& node) {
      if (node < plain.num_ranks) node = (node + 1) % plain.num_ranks;
    };
    for (Link& link : renamed.links) {
      rename(link.tail);
      rename(link.head);
    }
    for (Kind kind : kAllKinds) {
      if (kind == Kind::kAllToAll) continue;  // its limit need not be tight
      const Bounds before = BoundsOf(plain, kind), after = BoundsOf(renamed, kind, {.root = 0});
      if (MustMake(kind, plain.num_ranks).has_root()) {
        int32_t root = 0;
        rename(root);
        EXPECT_EQ(BoundsOf(renamed, kind, {.root = root}).seconds_per_byte,
                  before.seconds_per_byte);
      } else {
        EXPECT_EQ(after.seconds_per_byte, before.seconds_per_byte);
        EXPECT_EQ(after.latency_ps, before.latency_ps);
      }
    }
  }
}

TEST(BoundsProperty, ReversedCollectivesHaveTheLimitsOfTheTransposedNetwork) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Topology there = MustBuild(RandomNetwork(seed));
    const Topology back = MustBuild(Transposed(RandomNetwork(seed)));
    for (Kind kind : kAllKinds) {
      const Collective collective = MustMake(kind, there.num_ranks());
      const Bounds one = MustBound(there, collective);
      const Bounds other = MustBound(back, collective.Reversed());
      EXPECT_EQ(one.steps, other.steps) << Name(kind);
      EXPECT_EQ(one.latency_ps, other.latency_ps);
      if (kind == Kind::kAllToAll) continue;
      // Switches copy but do not add: of an all-reduce only what comes into a part is counted.
      if (kind == Kind::kAllReduce && there.has_switches()) continue;
      EXPECT_EQ(one.seconds_per_byte, other.seconds_per_byte);
    }
  }
}

// --- Moore bound ---------------------------------------------------------------------------------

TEST(MooreBoundTest, IsTheFirstSumOfPowersThatHoldsAllRanks) {
  EXPECT_EQ(MooreBoundSteps(1, 4), 0);
  EXPECT_EQ(MooreBoundSteps(2, 4), 1);
  EXPECT_EQ(MooreBoundSteps(5, 4), 1);
  EXPECT_EQ(MooreBoundSteps(6, 4), 2);
  EXPECT_EQ(MooreBoundSteps(21, 4), 2);
  EXPECT_EQ(MooreBoundSteps(22, 4), 3);
  EXPECT_EQ(MooreBoundSteps(1024, 4), 5);  // [direct-connect] Table 4
  EXPECT_EQ(MooreBoundSteps(8, 1), 7);
  EXPECT_EQ(MooreBoundSteps(int64_t{1} << 62, 2), 62);
}

TEST(MooreBoundTest, ReversesTakeOnePortOfEachRank) {
  EXPECT_EQ(BidirectionalMooreBoundSteps(1, 1), 0);
  EXPECT_EQ(BidirectionalMooreBoundSteps(2, 1), 1);
  EXPECT_EQ(BidirectionalMooreBoundSteps(1, 4), 0);
  EXPECT_EQ(BidirectionalMooreBoundSteps(5, 4), 1);
  EXPECT_EQ(BidirectionalMooreBoundSteps(6, 4), 2);
  EXPECT_EQ(BidirectionalMooreBoundSteps(17, 4), 2);
  EXPECT_EQ(BidirectionalMooreBoundSteps(18, 4), 3);
  EXPECT_EQ(BidirectionalMooreBoundSteps(10, 3), 2);  // the Petersen graph meets it
  EXPECT_EQ(BidirectionalMooreBoundSteps(int64_t{3} << 60, 3), 61);
  // Rings meet it.
  for (int32_t m = 3; m <= 20; ++m) EXPECT_EQ(BidirectionalMooreBoundSteps(m, 2), m / 2);
  for (int32_t d = 2; d <= 6; ++d)
    for (int32_t m = 2; m <= 300; ++m)
      EXPECT_GE(BidirectionalMooreBoundSteps(m, d), MooreBoundSteps(m, d));
}

TEST(MooreBoundTest, NoRegularNetworkIsShallower) {
  for (int32_t m = 2; m <= 60; ++m)
    for (int32_t d = 2; d <= 4; ++d) {
      const Bounds bounds = BoundsOf(GenKautz(d, m), Kind::kAllGather);
      EXPECT_GE(bounds.steps, MooreBoundSteps(m, d));
      EXPECT_LE(bounds.steps, MooreBoundSteps(m, d) + 1);
    }
}

TEST(MooreFlowTest, ByHandAndOfThePaper) {
  EXPECT_EQ(MooreFlow(2, 1), Rational(1));
  EXPECT_EQ(MooreFlow(5, 1), Rational(1, 10));  // distances 1 + 2 + 3 + 4
  EXPECT_EQ(MooreFlow(7, 2), Rational(2, 10));  // two at 1, four at 2
  EXPECT_EQ(MooreFlow(6, 2), Rational(2, 8));
  EXPECT_EQ(MooreFlow(5, 4), Rational(1));
  // 1 / f of degree 4 as measured for [alltoall-mcf] figure 10.
  EXPECT_EQ(MooreFlow(50, 4), Rational(4, 123));  // 30.75
  EXPECT_EQ(MooreFlow(100, 4), Rational(1, 72));
  EXPECT_EQ(MooreFlow(1000, 4), Rational(4, 4547));  // 1136.75
  EXPECT_EQ(MooreFlow(int64_t{1} << 40, 1),
            Rational(1) / (Rational(int64_t{1} << 39) * Rational((int64_t{1} << 40) - 1)));
}

TEST(MooreFlowTest, IsTheSumOfTheTheoremOnFullTrees) {
  // 1 + d + .. + d^(k-1) ranks: ((k - 1) d^(k+1) - k d^k + d) / (d - 1)^2 is the sum of distances.
  for (int64_t d = 2; d <= 6; ++d) {
    int64_t ranks = 1, power = d;  // d^k
    for (int64_t k = 2; k <= 8; ++k) {
      ranks += power;
      power *= d;
      EXPECT_EQ(MooreFlow(ranks, d),
                Rational(d * (d - 1) * (d - 1), (k - 1) * power * d - k * power + d))
          << d << " " << k;
    }
  }
}

TEST(MooreFlowTest, NoRegularNetworkCarriesMore) {
  for (int32_t m = 2; m <= 24; ++m)
    for (int32_t d = 2; d <= 4; ++d) {
      if (m <= d) continue;
      const Bounds bounds = BoundsOf(GenKautz(d, m), Kind::kAllToAll);
      EXPECT_LE(*bounds.f_upper, MooreFlow(m, d)) << d << " " << m;
    }
}

// A directed ring of 3 with 8 B/s a link, whose rank 1 takes in and sends out 3 B/s only.
TEST(BoundsWithHosts, HostLimitsCut) {
  Topology::Builder builder(3);
  for (int32_t rank = 0; rank < 3; ++rank)
    builder.AddLink(NodeId{rank}, NodeId{(rank + 1) % 3}, {.bandwidth = 8, .alpha_ps = 5});
  builder.SetHostBandwidth(NodeId{1}, 3);
  const Topology topology = *std::move(builder).Build();
  // Two of three shards must leave for rank 1, or pass it.
  const Bounds gather = MustBound(topology, MustMake(Kind::kAllGather, 3));
  EXPECT_EQ(gather.seconds_per_byte, Rational(2, 9));
  EXPECT_EQ(gather.tb, Rational(16, 9));
  EXPECT_EQ(gather.steps, 2);
  ASSERT_TRUE(gather.cut.has_value());
  for (NodeId node : gather.cut->inside) EXPECT_LT(node.value, 3);
  // Into rank 1 go its own two blocks and the one from 0 to 2: f = 3 / 3 B/s, an eighth of a link.
  const Bounds all_to_all = MustBound(topology, MustMake(Kind::kAllToAll, 3));
  EXPECT_EQ(all_to_all.f_upper, Rational(1, 8));
  EXPECT_EQ(all_to_all.seconds_per_byte, Rational(1, 3));
  EXPECT_NE(all_to_all.bandwidth_reason.find("host limits"), std::string::npos);
}

}  // namespace
}  // namespace tutti

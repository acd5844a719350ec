#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ten/events.h"
#include "ten/rounds.h"
#include "tutti/base/parallel.h"
#include "tutti/base/random.h"
#include "tutti/bounds/bounds.h"
#include "tutti/sched/transform.h"
#include "unit/synth/classic_support.h"
#include "unit/synth/ten_testing.h"

namespace tutti {
namespace {

using classic_test::Algorithm;
using ten_test::MustMake;
using ten_test::RandomNetwork;
using test_support::Parse;
using testing::HasSubstr;

int32_t Rounds(const std::string& expression, int32_t chunks = 1) {
  return MustMake(Parse(expression), CollectiveKind::kAllGather, {.chunks = chunks}).num_steps;
}

// Every rank of a ring of four gets its two neighbours' chunks at once; the chunk from across then
// comes from either side.
TEST(TenTest, RingOfFourTakesTwoRounds) {
  const Schedule schedule = MustMake(Parse("ring(4)"), CollectiveKind::kAllGather);
  EXPECT_EQ(schedule.kind, ScheduleKind::kStep);
  EXPECT_EQ(schedule.num_steps, 2);
  ASSERT_EQ(schedule.transfers.size(), 12U);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(schedule.transfers[i].step, i < 8 ? 0 : 1);
}

// [tacos] figure 14, and what its published code takes (which is the fewest there can be).
TEST(TenTest, TakesNoMoreRoundsThanThePublishedCode) {
  EXPECT_EQ(Rounds("mesh(3,3)"), 4);
  EXPECT_EQ(Rounds("mesh(8,8)"), 32);
  EXPECT_EQ(Rounds("mesh(16,16)"), 128);
  EXPECT_EQ(Rounds("torus(5,5,5)"), 21);
  EXPECT_EQ(Rounds("mesh(5,5,5)"), 42);
  EXPECT_EQ(Rounds("mesh(8,8)", 4), 126);
}

TEST(TenSlow, TakesNoMoreRoundsThanThePublishedCodeOnLargeNetworks) {
  EXPECT_EQ(Rounds("mesh(20,20)"), 200);
  EXPECT_EQ(Rounds("mesh(24,24)"), 288);
  EXPECT_EQ(Rounds("mesh(32,32)"), 512);
  EXPECT_EQ(Rounds("torus(8,8,8)"), 86);
  EXPECT_EQ(Rounds("torus(10,10,10)"), 167);
  EXPECT_EQ(Rounds("mesh(8,8,8)"), 171);
  EXPECT_EQ(Rounds("mesh(16,16)", 4), 510);
}

TEST(TenTest, ReachesTheFewestRoundsOnRegularNetworks) {
  // (N - 1) / degree, rounded up.
  EXPECT_EQ(Rounds("complete(8)"), 1);
  EXPECT_EQ(Rounds("uniring(1,9)"), 8);
  EXPECT_EQ(Rounds("torus(4,4)"), 4);
  EXPECT_EQ(Rounds("kautz(4,2)"), 20);
  EXPECT_EQ(Rounds("hypercube(5)"), 7);
}

// On digraphs without symmetry: every collective, both link models, any number of chunks; the
// verifier accepts, and no schedule is faster than the proven bound.
TEST(TenProperty, MakesCorrectSchedulesOfAnyNetwork) {
  using Kind = CollectiveKind;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomNetwork(random, seed % 3 == 0);
    for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce, Kind::kBroadcast,
                      Kind::kReduce, Kind::kGather, Kind::kScatter, Kind::kAllToAll}) {
      SCOPED_TRACE(Name(kind));
      const SynthOptions options{
          .chunks = static_cast<int32_t>(1 + random.Below(4)),
          .seed = 1 + random.Below(9),
          .size_bytes = int64_t{1} << (10 + random.Below(20)),
          .link_model = random.Below(2) == 0 ? LinkModel::kHeld : LinkModel::kPipelined,
          .tries = static_cast<int32_t>(1 + random.Below(3))};
      const auto root =
          static_cast<int32_t>(random.Below(static_cast<uint64_t>(topology.num_ranks())));
      const Schedule schedule = MustMake(topology, kind, options, root);
      const Result<Bounds> bounds = ComputeBounds(topology, schedule.collective);
      ASSERT_TRUE(bounds.has_value());
      if (schedule.kind == ScheduleKind::kStep) {
        EXPECT_GE(schedule.num_steps, bounds->steps);
        EXPECT_GE(AnalyticCost(topology, schedule).tb, bounds->tb);
      } else {
        const Rational seconds(CompletionPs(topology, schedule), 1'000'000'000'000);
        EXPECT_GE(seconds * Rational(topology.max_in_bandwidth()),
                  bounds->tb * Rational(options.size_bytes));
      }
    }
  }
}

TEST(TenProperty, BlocksOfAnySizeReachTheirDestination) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomNetwork(random, seed % 2 == 0);
    const auto n = static_cast<size_t>(topology.num_ranks());
    std::vector<int64_t> demand(n * n);
    for (int64_t& bytes : demand)
      bytes = random.Below(3) == 0 ? 0 : static_cast<int64_t>(random.Below(100'000));
    demand[1] = 1;
    const Collective collective =
        *Collective::Make(CollectiveKind::kAllToAllV, topology.num_ranks(),
                          {.root = 0, .all_reduce_shards = 0, .demand = demand});
    const Result<Schedule> made = RunSynthesizer(Algorithm("ten"), topology, collective,
                                                 {.chunks = 2, .size_bytes = 1 << 20});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_TRUE(Verify(topology, collective, *made).verified());
  }
}

// Every rank's block crosses each link of its way once, the farthest first: the root's single
// out-link is never idle, and the last block has one hop to go.
TEST(TenTest, ScatterOnAUnidirectionalRingTakesNMinusOneRounds) {
  EXPECT_EQ(MustMake(Parse("uniring(1,9)"), CollectiveKind::kScatter).num_steps, 8);
  EXPECT_EQ(MustMake(Parse("ring(9)"), CollectiveKind::kScatter).num_steps, 4);
  // 8 links carry 1 + 2 + ... + 8 = 36 blocks each.
  EXPECT_GE(MustMake(Parse("uniring(1,9)"), CollectiveKind::kAllToAll).num_steps, 36);
}

TEST(TenProperty, SameSeedSameScheduleOnAnyNumberOfThreadsAndMoreTriesAreNeverWorse) {
  for (const char* expression :
       {"mesh(48,48)", "dragonfly(4,5,bw=[400,200]GB/s)", "without(torus(5,5),links=4,seed=2)"}) {
    SCOPED_TRACE(expression);
    const Topology topology = Parse(expression);
    SetNumThreads(1);
    const Schedule one = MustMake(topology, CollectiveKind::kAllGather, {.seed = 3, .tries = 2});
    SetNumThreads(4);
    const Schedule four = MustMake(topology, CollectiveKind::kAllGather, {.seed = 3, .tries = 2});
    SetNumThreads(0);
    EXPECT_EQ(one, four);
    const Schedule more = MustMake(topology, CollectiveKind::kAllGather, {.seed = 3, .tries = 5});
    if (one.kind == ScheduleKind::kStep)
      EXPECT_LE(more.num_steps, one.num_steps);
    else
      EXPECT_LE(CompletionPs(topology, more), CompletionPs(topology, one));
  }
}

// Two fast boxes of four, joined rank by rank by slow links: with the paper's rule a slow link
// takes at once what the box has already.
TEST(TenEventsTest, WaitingForTheFastLinksBeatsTakingASlowOneAtOnce) {
  const Topology topology = Parse("unwind(rfs(2,4,8,bw=[200,100,50]GB/s),degree=1)");
  std::vector<NodeId> source;
  for (NodeId rank : topology.Ranks()) source.push_back(rank);
  std::vector<ten::LinkTime> time;
  for (LinkId link : topology.Links()) {
    const int64_t ps = 1'000'000'000'000'000 / topology.bandwidth(link);
    time.push_back({ps, ps});
  }
  const auto end = [&](bool waits) {
    const ten::EventsProblem problem{.topology = topology,
                                     .source = source,
                                     .time = time,
                                     .policy = ten::RarestPolicy(),
                                     .waits = waits};
    return *ten::MatchEvents(problem, INT64_MAX - 1, nullptr);
  };
  EXPECT_LT(end(true), end(false));
}

// A fast link leads away from a rank that only slow links lead to: what is put off for a faster way
// that does not exist is sent all the same.
TEST(TenEventsTest, NobodyWaitsForAWayThatDoesNotExist) {
  Topology::Builder builder(3);
  const LinkSpec fast{.bandwidth = 100'000'000'000, .alpha_ps = 0};
  const LinkSpec slow{.bandwidth = 1'000'000'000, .alpha_ps = 0};
  builder.AddLink(NodeId{0}, NodeId{1}, fast);
  builder.AddLink(NodeId{1}, NodeId{2}, slow);
  builder.AddLink(NodeId{2}, NodeId{0}, slow);
  const Topology topology = *std::move(builder).Build();
  EXPECT_EQ(MustMake(topology, CollectiveKind::kAllGather).transfers.size(), 6U);
}

TEST(TenRoundsTest, StopsAsSoonAsMoreRoundsAreNeededThanAllowed) {
  const Topology topology = Parse("ring(9)");
  std::vector<NodeId> source;
  for (NodeId rank : topology.Ranks()) source.push_back(rank);
  EXPECT_EQ(ten::FewestRounds(topology, source), 4);
  const ten::RoundsProblem problem{.topology = topology, .source = source};
  EXPECT_EQ(*ten::MatchRounds(problem, 100, nullptr), 4);
  int32_t rounds = 0;
  EXPECT_EQ(*ten::MatchRounds(problem, 2,
                              [&](int32_t, std::span<const uint32_t>) -> Status {
                                ++rounds;
                                return {};
                              }),
            3);
  EXPECT_EQ(rounds, 2);
}

TEST(TenTest, RefusesWhatItCannotDo) {
  const Collective eight = *Collective::Make(CollectiveKind::kAllGather, 8);
  const auto error = [&](const std::string& expression, const Collective& collective,
                         const SynthOptions& options) {
    const Result<Schedule> made =
        RunSynthesizer(Algorithm("ten"), Parse(expression), collective, options);
    return made ? std::string("made") : made.error().message;
  };
  EXPECT_THAT(error("ring(8)", eight, {.chunks = -1}), HasSubstr("must be >= 0, got -1"));
  EXPECT_THAT(error("ring(8)", eight, {.tries = -2}), HasSubstr("got 0 and -2"));
  EXPECT_THAT(error("ring(8)", eight, {.size_bytes = 0}), HasSubstr("the size must be >= 1"));
  EXPECT_THAT(error("ring(8)", eight, {.chunks = 2'000'000'000}), HasSubstr("more than 2^31 - 1"));
  EXPECT_THAT(error("ring(8)", eight, {.chunks = 200'000'000}), HasSubstr("GiB of memory, "));
}

TEST(TransformTimedTest, ReversingTwiceGivesTheSameSchedule) {
  const Topology topology = Parse("dragonfly(4,5,bw=[400,200]GB/s)");
  const Schedule schedule = MustMake(topology, CollectiveKind::kAllGather, {.chunks = 3});
  std::vector<LinkId> same;
  for (LinkId link : topology.Links()) same.push_back(link);
  const uint64_t fingerprint = topology.Fingerprint();
  const Schedule turned = ReverseTimed(topology, schedule, same, fingerprint);
  EXPECT_EQ(turned.collective.kind(), CollectiveKind::kReduceScatter);
  EXPECT_EQ(CompletionPs(topology, turned), CompletionPs(topology, schedule));
  const Schedule back = ReverseTimed(topology, turned, same, fingerprint);
  EXPECT_TRUE(std::is_sorted(back.start_ps.begin(), back.start_ps.end()));
  EXPECT_EQ(back.start_ps, schedule.start_ps);
}

}  // namespace
}  // namespace tutti

// Schedules, bounds and proofs of collectives within groups of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/build.h"
#include "support/parse.h"
#include "tutti/bounds/proven_bounds.h"
#include "tutti/lower/lowering.h"
#include "tutti/lower/plan_file.h"
#include "tutti/sched/cost.h"
#include "tutti/store/store.h"
#include "tutti/synth/auto.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/group_network.h"
#include "tutti/verify/verifier.h"

namespace tutti::synth_groups_test {
namespace {

using Kind = CollectiveKind;
using test_support::MustBuild;
using test_support::MustMake;
using test_support::Parse;
using Groups = std::vector<std::vector<NodeId>>;

constexpr Kind kKinds[] = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                           Kind::kBroadcast, Kind::kReduce,        Kind::kGather,
                           Kind::kScatter,   Kind::kAllToAll};
constexpr int64_t kSize = 1 << 20;

std::vector<NodeId> Ranks(std::initializer_list<int32_t> values) {
  std::vector<NodeId> ranks;
  for (const int32_t value : values) ranks.push_back(NodeId{value});
  return ranks;
}

Result<Schedule> Make(std::string_view name, const Topology& topology,
                      const Collective& collective) {
  return RunSynthesizer(**FindSynthesizer(name), topology, collective, {.size_bytes = kSize});
}

// The schedule, verified, and no faster than the bound.
void ExpectProven(const Topology& topology, const Schedule& schedule) {
  const VerifyReport report = Verify(topology, schedule.collective, schedule);
  EXPECT_TRUE(report.verified()) << (report.violations.empty() ? ""
                                                               : report.violations.front().message);
  const Result<Bounds> bounds = BoundsOf(topology, schedule.collective);
  ASSERT_TRUE(bounds.has_value()) << bounds.error().message;
  EXPECT_LE(bounds->Limit(kSize), PredictedSeconds(topology, schedule, kSize));
  if (schedule.kind == ScheduleKind::kStep) {
    EXPECT_LE(bounds->steps, schedule.num_steps);
    EXPECT_LE(bounds->seconds_per_byte * Rational(kSize),
              PredictedSeconds(topology, schedule, kSize));
  }
}

// --- Worked example: ranks 0 and 2 of a ring of four, two hops apart by either way

TEST(GroupsTest, TwoOfFourOnARing) {
  const Topology ring = Parse("ring(4,bw=1GB/s,alpha=1us)");
  const Collective gather = MustMake(Kind::kAllGather, 4, {.groups = {Ranks({0, 2})}});
  const Result<Bounds> bounds = ComputeBounds(ring, gather);
  ASSERT_TRUE(bounds.has_value());
  EXPECT_EQ(bounds->steps, 2);
  EXPECT_EQ(bounds->latency_ps, 2'000'000);
  // Half of M leaves rank 0 over two links of 1 GB/s.
  EXPECT_EQ(bounds->seconds_per_byte, Rational(1, 4'000'000'000));
  const Result<Schedule> schedule = Make("direct", ring, gather);
  ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
  ExpectProven(ring, *schedule);
  EXPECT_EQ(schedule->num_steps, 2);
  // A quarter of M a link and step.
  EXPECT_EQ(AnalyticCost(ring, *schedule).tb * Rational(1, ring.max_in_bandwidth()),
            Rational(1, 2'000'000'000));
}

TEST(GroupsTest, ForwardersReduceWhatPassesThem) {
  // Ranks 1 and 2 hang on rank 3, which hangs on rank 0: their sum crosses the last link once.
  Topology::Builder builder(4);
  constexpr LinkSpec kLink{.bandwidth = 1'000'000'000, .alpha_ps = 0};
  builder.AddDuplex(NodeId{0}, NodeId{3}, kLink);
  builder.AddDuplex(NodeId{1}, NodeId{3}, kLink);
  builder.AddDuplex(NodeId{2}, NodeId{3}, kLink);
  const Topology star = MustBuild(std::move(builder));
  const Collective reduce = MustMake(Kind::kReduce, 4, {.groups = {Ranks({0, 1, 2})}});
  for (const char* name : {"direct", "ten"}) {
    const Result<Schedule> schedule = Make(name, star, reduce);
    ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
    ExpectProven(star, *schedule);
    int64_t units = 0;
    for (const Transfer& transfer : schedule->transfers)
      if (star.head(transfer.link) == NodeId{0}) units += transfer.units();
    EXPECT_EQ(units, schedule->units_per_shard) << name;
  }
}

TEST(GroupsTest, TwoGroupsShareWhatTheBoundSaysTheyShare) {
  // Two pairs at the ends of one cable: both groups cross it, so that it takes twice what one takes.
  Topology::Builder builder(4);
  constexpr LinkSpec kLink{.bandwidth = 1'000'000'000, .alpha_ps = 0};
  builder.AddDuplex(NodeId{0}, NodeId{1}, kLink);
  builder.AddDuplex(NodeId{1}, NodeId{2}, kLink);
  builder.AddDuplex(NodeId{2}, NodeId{3}, kLink);
  const Topology line = MustBuild(std::move(builder));
  for (const Kind kind : {Kind::kAllGather, Kind::kAllToAll, Kind::kReduceScatter}) {
    const Collective one = MustMake(kind, 4, {.groups = {Ranks({0, 2})}}),
                     both = MustMake(kind, 4, {.groups = {Ranks({0, 2}), Ranks({1, 3})}});
    const Rational alone = ComputeBounds(line, one)->seconds_per_byte;
    EXPECT_EQ(alone, Rational(1, 2'000'000'000)) << Name(kind);
    EXPECT_EQ(ComputeBounds(line, both)->seconds_per_byte, alone * Rational(2)) << Name(kind);
    const Result<Schedule> schedule = Make("direct", line, both);
    ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
    ExpectProven(line, *schedule);
  }
}

// --- What the judge finds

TEST(GroupsTest, TheJudgeNamesARankThatTakesNoPart) {
  const Topology ring = Parse("ring(4)");
  const Collective forward = MustMake(Kind::kAllGather, 4, {.groups = {Ranks({0, 2})}});
  const Collective idle =
      MustMake(Kind::kAllGather, 4, {.groups = {Ranks({0, 2})}, .others = Others::kIdle});
  Schedule schedule = *Make("direct", ring, forward);
  EXPECT_TRUE(Verify(ring, forward, schedule).verified());
  schedule.collective = idle;
  const VerifyReport report = Verify(ring, idle, schedule);
  ASSERT_FALSE(report.verified());
  EXPECT_NE(report.violations.front().message.find("takes no part"), std::string::npos)
      << report.violations.front().message;
  // The ring without the others falls apart.
  const Result<Schedule> none = Make("direct", ring, idle);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kInfeasible);
}

TEST(GroupsTest, TheJudgeMissesWhatIsLeftOut) {
  const Topology torus = Parse("torus(3,3)");
  for (const Kind kind : kKinds) {
    const Collective collective = MustMake(kind, 9, {.groups = {Ranks({0, 4, 8}), Ranks({1, 5})}});
    const Result<Schedule> made = Make("direct", torus, collective);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    for (size_t i = 0; i < made->transfers.size(); ++i) {
      Schedule faulty = *made;
      faulty.transfers.erase(faulty.transfers.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(Verify(torus, collective, faulty).verified()) << Name(kind) << " without " << i;
    }
  }
}

TEST(GroupsTest, AlgorithmsOfAllRanksRefuseAndNameThoseOfGroups) {
  const Collective collective = MustMake(Kind::kAllGather, 9, {.groups = {Ranks({0, 1})}});
  const Result<Schedule> made = Make("torus-dims", Parse("torus(3,3)"), collective);
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.error().message.find("direct"), std::string::npos) << made.error().message;
  EXPECT_NE(made.error().message.find("forest"), std::string::npos) << made.error().message;
}

// --- Properties over seeds

Topology RandomNetwork(std::mt19937& rng) {
  const auto num_ranks = static_cast<int32_t>(4 + rng() % 6);
  Topology::Builder builder(num_ranks);
  const auto spec = [&rng] {
    return LinkSpec{.bandwidth = 1'000'000'000 * static_cast<int64_t>(1 + rng() % 3),
                    .alpha_ps = 1'000'000};
  };
  const bool cables = rng() % 2 == 0;
  for (int32_t rank = 0; rank < num_ranks; ++rank) {
    const NodeId next{(rank + 1) % num_ranks};
    cables ? builder.AddDuplex(NodeId{rank}, next, spec())
           : builder.AddLink(NodeId{rank}, next, spec());
  }
  for (auto more = rng() % 8; more > 0; --more) {
    const auto tail = static_cast<int32_t>(rng() % static_cast<uint32_t>(num_ranks));
    const auto hop = static_cast<int32_t>(1 + rng() % static_cast<uint32_t>(num_ranks - 1));
    const NodeId head{(tail + hop) % num_ranks};
    cables ? builder.AddDuplex(NodeId{tail}, head, spec())
           : builder.AddLink(NodeId{tail}, head, spec());
  }
  return MustBuild(std::move(builder));
}

Groups RandomGroups(std::mt19937& rng, int32_t num_ranks, bool apart) {
  std::vector<NodeId> order;
  for (int32_t rank = 0; rank < num_ranks; ++rank) order.push_back(NodeId{rank});
  std::shuffle(order.begin(), order.end(), rng);
  Groups groups;
  if (apart && num_ranks >= 5 && rng() % 2 == 0) {
    const auto first = static_cast<std::ptrdiff_t>(2 + rng() % 2);
    groups.emplace_back(order.begin(), order.begin() + first);
    groups.emplace_back(order.begin() + first, order.begin() + first + 2);
    return groups;
  }
  const auto size = static_cast<std::ptrdiff_t>(2 + rng() % static_cast<uint32_t>(num_ranks - 1));
  groups.emplace_back(order.begin(), order.begin() + size);
  if (!apart) {
    std::shuffle(order.begin(), order.end(), rng);
    groups.emplace_back(order.begin(), order.begin() + 3);
  }
  return groups;
}

TEST(GroupsProperty, EverySynthesizersScheduleIsProvenAndNotBelowTheBound) {
  std::map<std::string_view, int> made_by;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Topology topology = RandomNetwork(rng);
    const Groups groups = RandomGroups(rng, topology.num_ranks(), seed % 3 != 0);
    for (const Kind kind : kKinds)
      for (const Synthesizer& synthesizer : Synthesizers()) {
        if (synthesizer.groups == GroupUse::kNone || synthesizer.on_request_only) continue;
        SCOPED_TRACE(std::string(Name(kind)) + " by " + std::string(synthesizer.name));
        const Collective collective = MustMake(
            kind, topology.num_ranks(),
            {.all_reduce_shards = synthesizer.one_shard_all_reduce ? 1 : 0, .groups = groups});
        const Result<Schedule> schedule =
            RunSynthesizer(synthesizer, topology, collective, {.size_bytes = kSize});
        if (!schedule) {
          EXPECT_TRUE(schedule.error().code == ErrorCode::kInfeasible ||
                      schedule.error().code == ErrorCode::kInvalidArgument)
              << schedule.error().message;
          continue;
        }
        ++made_by[synthesizer.name];
        ExpectProven(topology, *schedule);
        // Files keep the groups, and the executor's plans take them.
        const std::string text = ScheduleToJson(topology, *schedule);
        const Result<ScheduleFile> again = ScheduleFromJson(text);
        ASSERT_TRUE(again.has_value()) << again.error().message;
        EXPECT_EQ(again->schedule, *schedule);
        const Result<Plan> plan = Lower(topology, *schedule);
        ASSERT_TRUE(plan.has_value()) << plan.error().message;
        EXPECT_TRUE(CheckPlan(*plan).empty()) << CheckPlan(*plan).front().message;
        const Result<Plan> stored = PlanFromFile(*PlanToFile(*plan));
        ASSERT_TRUE(stored.has_value()) << stored.error().message;
        EXPECT_EQ(stored->collective, plan->collective);
        EXPECT_EQ(PlanToText(*stored), PlanToText(*plan));
      }
  }
  for (const Synthesizer& synthesizer : Synthesizers()) {
    if (synthesizer.groups < GroupUse::kThroughOthers || synthesizer.on_request_only) continue;
    EXPECT_GT(made_by[synthesizer.name], 1) << synthesizer.name;
  }
}

TEST(GroupsProperty, OneGroupOfAllRanksCostsWhatTheWholeCosts) {
  const Topology torus = Parse("torus(3,4)");
  Groups all(1);
  for (const NodeId rank : torus.Ranks()) all[0].push_back(rank);
  for (const Kind kind : kKinds) {
    const Collective whole = MustMake(kind, 12), group = MustMake(kind, 12, {.groups = all});
    const Result<Bounds> of_whole = BoundsOf(torus, whole), of_group = BoundsOf(torus, group);
    EXPECT_EQ(of_whole->seconds_per_byte, of_group->seconds_per_byte) << Name(kind);
    EXPECT_EQ(of_whole->f_upper, of_group->f_upper);
    EXPECT_EQ(of_whole->steps, of_group->steps);
    EXPECT_EQ(PredictedSeconds(torus, *Make("direct", torus, whole), kSize),
              PredictedSeconds(torus, *Make("direct", torus, group), kSize))
        << Name(kind);
  }
}

TEST(GroupsProperty, ABoundWithIdleRanksIsNotBelowThatWithForwardingOnes) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Topology topology = RandomNetwork(rng);
    const Groups groups = RandomGroups(rng, topology.num_ranks(), true);
    for (const Kind kind : {Kind::kAllGather, Kind::kAllToAll, Kind::kAllReduce}) {
      const Result<Bounds> idle = ComputeBounds(
          topology,
          MustMake(kind, topology.num_ranks(), {.groups = groups, .others = Others::kIdle}));
      const Result<Bounds> forward =
          ComputeBounds(topology, MustMake(kind, topology.num_ranks(), {.groups = groups}));
      ASSERT_TRUE(forward.has_value()) << forward.error().message;
      if (!idle) continue;
      EXPECT_LE(forward->seconds_per_byte, idle->seconds_per_byte) << Name(kind);
    }
  }
}

TEST(GroupsTest, AutoTakesTheBestOfThoseThatMakeGroups) {
  const Topology torus = Parse("torus(3,3)");
  const Collective collective = MustMake(Kind::kAllReduce, 9, {.groups = {Ranks({0, 1, 2})}});
  const Result<AutoChoice> choice = ChooseSynthesizer(torus, collective, {.size_bytes = kSize});
  ASSERT_TRUE(choice.has_value()) << choice.error().message;
  ExpectProven(torus, choice->schedule);
  EXPECT_TRUE(choice->schedule.collective.has_groups());
}

TEST(GroupNetworkTest, OthersBecomeSwitchesOrGo) {
  const Topology ring = Parse("ring(5)");
  const std::vector<NodeId> ranks = Ranks({3, 1, 2});
  const Result<GroupNetwork> forward = MakeGroupNetwork(ring, ranks, [](NodeId) { return false; });
  ASSERT_TRUE(forward.has_value());
  EXPECT_EQ(forward->network.num_ranks(), 3);
  EXPECT_EQ(forward->network.num_nodes(), 5);
  EXPECT_EQ(forward->network.num_links(), ring.num_links());
  for (const LinkId link : forward->network.Links()) {
    const LinkId there = forward->link_of[link.index()];
    EXPECT_EQ(forward->node_of[forward->network.tail(link).index()], ring.tail(there));
    EXPECT_EQ(forward->node_of[forward->network.head(link).index()], ring.head(there));
    EXPECT_EQ(forward->network.spec(link), ring.spec(there));
  }
  const auto others = [&](NodeId node) {
    return std::count(ranks.begin(), ranks.end(), node) == 0;
  };
  const Result<GroupNetwork> alone = MakeGroupNetwork(ring, ranks, others);
  ASSERT_TRUE(alone.has_value());
  EXPECT_EQ(alone->network.num_nodes(), 3);
  EXPECT_EQ(alone->network.num_links(), 4);
  const Result<GroupNetwork> apart = MakeGroupNetwork(
      ring, Ranks({0, 2}), [](NodeId node) { return node.value != 0 && node.value != 2; });
  ASSERT_FALSE(apart.has_value());
  EXPECT_NE(apart.error().message.find("does not reach"), std::string::npos);
}

}  // namespace
}  // namespace tutti::synth_groups_test

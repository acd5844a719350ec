// The best of all synthesizers: never slower than any of them, the figure it was asked for, what it
// refuses and what it leaves out.
#include "tutti/synth/auto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "classic_support.h"
#include "tutti/base/cancel.h"
#include "tutti/base/random.h"

namespace tutti::classic_test {
namespace {

using ::testing::HasSubstr;
using Kind = CollectiveKind;

const std::vector<Kind> kKinds{Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                               Kind::kBroadcast, Kind::kReduce,        Kind::kGather,
                               Kind::kScatter,   Kind::kAllToAll,      Kind::kAllToAllV};

Collective AnyCollective(Kind kind, int32_t num_ranks) {
  Collective::Options options;
  if (kind == Kind::kAllToAllV) {
    Random random(7);
    for (int32_t k = 0; k < num_ranks * num_ranks; ++k)
      options.demand.push_back(static_cast<int64_t>(random.Below(4)));
    options.demand[1] = 5;
  }
  if (kind == Kind::kBroadcast || kind == Kind::kReduce) options.root = num_ranks / 2;
  return *Collective::Make(kind, num_ranks, std::move(options));
}

const AutoCandidate& CandidateOf(const AutoChoice& choice, std::string_view name) {
  for (const AutoCandidate& candidate : choice.candidates)
    if (candidate.algorithm == name) return candidate;
  ADD_FAILURE() << "no candidate " << name;
  return choice.candidates.front();
}

// Against every synthesizer as `-a name` runs it.
void ExpectNoneIsFaster(const Topology& topology, Kind kind, const AutoChoice& choice,
                        const SynthOptions& options) {
  const Rational best = *choice.candidates[choice.chosen].seconds;
  for (const Synthesizer& synthesizer : Synthesizers()) {
    if (synthesizer.on_request_only) continue;
    Collective wanted = AnyCollective(kind, topology.num_ranks());
    if (kind == Kind::kAllReduce && synthesizer.one_shard_all_reduce)
      wanted = CollectiveFor(synthesizer.name, kind, topology.num_ranks());
    const Result<Schedule> made = RunSynthesizer(synthesizer, topology, wanted, options);
    if (!made) continue;
    const Rational seconds = PredictedSeconds(topology, *made, options.size_bytes);
    EXPECT_LE(best, seconds) << synthesizer.name;
    const Forecast forecast = synthesizer.forecast != nullptr
                                  ? synthesizer.forecast(topology, wanted, options)
                                  : Forecast{};
    if (made->kind == ScheduleKind::kTimed) {
      EXPECT_FALSE(forecast.steps_only) << synthesizer.name;
    } else {
      EXPECT_GE(AnalyticCost(topology, *made).tl, forecast.min_steps) << synthesizer.name;
    }
    const AutoCandidate& candidate = CandidateOf(choice, synthesizer.name);
    EXPECT_FALSE(candidate.failed) << synthesizer.name << ": " << candidate.reason;
    EXPECT_LE(candidate.seconds.value_or(best), seconds) << synthesizer.name;
  }
}

void ExpectBest(const std::string& expression, Kind kind, int64_t size) {
  SCOPED_TRACE(expression + " " + std::string(Name(kind)) + " " + std::to_string(size));
  const Topology topology = Parse(expression);
  const SynthOptions options{.size_bytes = size};
  const Collective collective = AnyCollective(kind, topology.num_ranks());
  const Result<AutoChoice> choice = ChooseSynthesizer(topology, collective, options);
  if (!choice) {
    EXPECT_EQ(choice.error().code, ErrorCode::kInfeasible) << choice.error().message;
    for (const Synthesizer& synthesizer : Synthesizers()) {
      if (synthesizer.on_request_only) continue;
      EXPECT_FALSE(RunSynthesizer(synthesizer, topology, collective, options).has_value())
          << synthesizer.name;
    }
    return;
  }
  const Schedule& schedule = choice->schedule;
  const AutoCandidate& chosen = choice->candidates[choice->chosen];
  const VerifyReport report = Verify(topology, schedule.collective, schedule);
  EXPECT_TRUE(report.verified()) << chosen.algorithm << ": " << report.violations.front().message;
  EXPECT_EQ(schedule.collective.kind(), kind);
  EXPECT_EQ(schedule.algorithm, chosen.algorithm);
  EXPECT_EQ(schedule.units_per_shard, chosen.chunks);
  EXPECT_EQ(PredictedSeconds(topology, schedule, size), *chosen.seconds);
  EXPECT_GE(*chosen.seconds, choice->limit_s);
  if (schedule.kind == ScheduleKind::kStep) {
    EXPECT_GE(*chosen.seconds, choice->step_limit_s);
  }
  ExpectNoneIsFaster(topology, kind, *choice, options);
}

TEST(AutoSlow, NoCandidateIsFaster) {
  for (const char* expression :
       {"ring(5)", "torus(3,4)", "mesh(2,4,bw=[35,80]GiB/s)", "genkautz(2,7)", "switch(4)"})
    for (Kind kind : kKinds)
      for (int64_t size : {int64_t{100}, int64_t{1} << 20}) ExpectBest(expression, kind, size);
}

const std::vector<std::string> kManyNetworks{"ring(2)",
                                             "ring(9)",
                                             "uniring(1,6)",
                                             "uniring(2,5)",
                                             "complete(6)",
                                             "hypercube(3)",
                                             "mesh(3,3)",
                                             "mesh(1,7)",
                                             "torus(2,2,3)",
                                             "torus(4,4)",
                                             "dgx1",
                                             "diamond",
                                             "kautz(2,2)",
                                             "without(torus(3,4),links=2,seed=3)",
                                             "unwind(switch(6),degree=2)",
                                             "rfs(2,3,2,bw=[200,100,50]GB/s)",
                                             "unwind(rfs(2,3,2,bw=[200,100,50]GB/s),degree=1)",
                                             "torus(3,3,alpha=[0.1us,2us],bw=[20,50]GB/s)",
                                             "dragonfly(3,2)",
                                             "bipartite(3)"};
const std::vector<int64_t> kManySizes{1, 4096, 1 << 17, 1 << 24, int64_t{1} << 32};

// Sizes take turns: every network and every collective meets all of them.
TEST(AutoSlow, NoCandidateIsFasterOnManyNetworks) {
  for (size_t network = 0; network < kManyNetworks.size(); ++network)
    for (size_t kind = 0; kind < kKinds.size(); ++kind)
      ExpectBest(kManyNetworks[network], kKinds[kind],
                 kManySizes[(network + kind) % kManySizes.size()]);
}

TEST(AutoByHand, NoCandidateIsFasterAtAnySize) {
  for (const std::string& network : kManyNetworks)
    for (Kind kind : kKinds)
      for (int64_t size : kManySizes) ExpectBest(network, kind, size);
}

TEST(AutoTest, StopsWhereTheBoundIsMet) {
  // On a ring of links in one direction every shard goes round: 3 steps of a quarter.
  const Topology topology = Parse("uniring(1,4,bw=1GB/s,alpha=1us)");
  const Result<AutoChoice> choice =
      ChooseSynthesizer(topology, CollectiveFor("bfb", Kind::kAllGather, 4), {.size_bytes = 4000});
  ASSERT_TRUE(choice.has_value()) << choice.error().message;
  EXPECT_EQ(*choice->candidates[choice->chosen].seconds, Rational(6, 1'000'000));
  EXPECT_EQ(choice->schedule.algorithm, "bfb");
  EXPECT_EQ(WhyChosen(*choice), "no schedule in steps is faster: it meets their bound");
  const AutoCandidate& direct = CandidateOf(*choice, "direct");
  EXPECT_FALSE(direct.seconds.has_value());
  EXPECT_FALSE(direct.failed);
  EXPECT_EQ(direct.reason, "takes at least 6 us, 'bfb' takes 6 us");
  EXPECT_THAT(CandidateOf(*choice, "taccl-like").reason, HasSubstr("on request only"));
}

TEST(AutoTest, AllReduceIsTriedOverOneShardToo) {
  // From the middle of a line no rank is farther than half of it, but rank 0 is the root: as many
  // steps as over N shards, and less data a step where M is large would not pay. Both are looked
  // at.
  const Topology topology = Parse("ring(8)");
  const Result<AutoChoice> choice =
      ChooseSynthesizer(topology, CollectiveFor("bfb", Kind::kAllReduce, 8), {.size_bytes = 1});
  ASSERT_TRUE(choice.has_value()) << choice.error().message;
  const AutoCandidate& dbt = CandidateOf(*choice, "dbt");
  EXPECT_EQ(dbt.shards, dbt.seconds ? 1 : 0);
  EXPECT_EQ(CandidateOf(*choice, "bfb").shards, 8);
}

// [tacos] figure 2(b): on a ring direct wins at 1 KB and ring at 1 GB. There every rank sends to
// every other on its own; here direct passes on what goes to several, which leaves to ring only the
// steps that it has too many. The paper's direct carries, over the busiest link, all pairs whose
// shortest way it is on: 64 * 65 / 2 shards, a half and a half again.
TEST(AutoSlow, FigureTwoB) {
  const Topology topology = Parse("ring(128,alpha=30ns,bw=150GB/s)");
  const int64_t kilo = 1000, giga = 1'000'000'000;
  for (int64_t size : {kilo, giga}) {
    const SynthOptions options{.size_bytes = size};
    const auto seconds = [&](std::string_view name) {
      const Result<Schedule> made =
          Synthesize(name, topology, CollectiveFor(name, Kind::kAllReduce, 128), options);
      return PredictedSeconds(topology, *made, size);
    };
    const Rational alpha(30, 1'000'000'000),
        shard_s = Rational(size, 128) / Rational(150'000'000'000);
    const Rational shards = Rational(63 * 64, 2) + Rational(64, 2);
    const Rational papers_direct = Rational(2) * (Rational(64) * alpha + shards * shard_s);
    const Rational direct = seconds("direct"), ring = seconds("ring");
    EXPECT_LE(direct, papers_direct);
    if (size == kilo) {
      EXPECT_LT(papers_direct, ring);
    } else {
      EXPECT_LT(ring, papers_direct);
    }
    const Result<AutoChoice> choice =
        ChooseSynthesizer(topology, CollectiveFor("ring", Kind::kAllReduce, 128), options);
    ASSERT_TRUE(choice.has_value()) << choice.error().message;
    EXPECT_LE(*choice->candidates[choice->chosen].seconds, std::min(direct, ring));
  }
}

TEST(AutoTest, WhatIsForecastToTakeTooLongIsLeftOutWithItsReason) {
  const Topology topology = Parse("torus(4,4)");
  const Collective collective = CollectiveFor("bfb", Kind::kAllGather, 16);
  // 16 shards at 16 ranks: 51.2 us of bfb, 25.6 us of ten, 256 us of others.
  const Result<AutoChoice> some = ChooseSynthesizer(topology, collective, {}, 100'000);
  ASSERT_TRUE(some.has_value()) << some.error().message;
  for (const AutoCandidate& candidate : some->candidates)
    EXPECT_EQ(candidate.seconds.has_value(),
              candidate.algorithm == "bfb")  // which meets the bound
        << candidate.algorithm;
  const Result<AutoChoice> none = ChooseSynthesizer(topology, collective, {}, 0);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kInfeasible);
  for (const char* part : {"no algorithm makes this", "bfb: is forecast to work for",
                           "direct: is forecast to work for", "taccl-like: runs on request"})
    EXPECT_THAT(none.error().message, HasSubstr(part));
}

TEST(AutoTest, TheCallersChunksAreTheOnlyOnes) {
  const Topology topology = Parse("mesh(3,3)");
  const Result<AutoChoice> choice = ChooseSynthesizer(
      topology, CollectiveFor("ten", Kind::kAllGather, 9), {.chunks = 3, .size_bytes = 1 << 26});
  ASSERT_TRUE(choice.has_value()) << choice.error().message;
  for (const AutoCandidate& candidate : choice->candidates)
    EXPECT_EQ(candidate.chunks, candidate.seconds ? 3 : 0) << candidate.algorithm;
}

TEST(AutoTest, OtherNumbersOfChunksAreTriedWhereTheyHelp) {
  // Chunks of ten fill the slots of unequal links better, where alpha does not matter.
  const Topology topology = Parse("mesh(2,4,bw=[35,80]GiB/s)");
  const Collective collective = CollectiveFor("ten", Kind::kAllReduce, 8);
  const SynthOptions tiny{.size_bytes = 1}, huge{.size_bytes = int64_t{1} << 30};
  const auto candidate = [&](const SynthOptions& options) {
    return CandidateOf(*ChooseSynthesizer(topology, collective, options), "ten");
  };
  EXPECT_EQ(candidate(tiny).chunks, 1);
  const AutoCandidate several = candidate(huge);
  ASSERT_TRUE(several.seconds.has_value());
  const Result<Schedule> one = Synthesize("ten", topology, collective, huge);
  EXPECT_GT(several.chunks, one->units_per_shard);
  EXPECT_LT(*several.seconds, PredictedSeconds(topology, *one, huge.size_bytes));
}

TEST(AutoTest, CanBeInterrupted) {
  const Topology ring = Parse("ring(4)");
  RequestCancel();
  const Result<AutoChoice> choice =
      ChooseSynthesizer(ring, CollectiveFor("bfb", Kind::kAllGather, 4), {});
  ResetCancel();
  ASSERT_FALSE(choice.has_value());
  EXPECT_EQ(choice.error().code, ErrorCode::kCancelled);
}

TEST(AutoTest, OneRankNeedsNothing) {
  const Topology topology = *Topology::Builder(1).Build();
  const Result<AutoChoice> choice =
      ChooseSynthesizer(topology, *Collective::Make(Kind::kAllGather, 1), {});
  ASSERT_TRUE(choice.has_value()) << choice.error().message;
  EXPECT_TRUE(choice->schedule.transfers.empty());
  EXPECT_EQ(WhyChosen(*choice), "no schedule is faster: it meets the bound");
}

}  // namespace
}  // namespace tutti::classic_test

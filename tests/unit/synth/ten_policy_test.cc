// Policies of ten, waiting, and the choice of the number of chunks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ten/policy.h"
#include "tutti/sched/transform.h"
#include "tutti/synth/ten.h"
#include "unit/synth/classic_support.h"
#include "unit/synth/ten_testing.h"

namespace tutti {
namespace {

using classic_test::Algorithm;
using ten_test::MustMake;
using ten_test::RandomNetwork;
using test_support::Parse;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// [tacos] figure 15, the switches unwound; the dragonfly in both readings of "4x5".
constexpr const char* kFigure15[] = {"dragonfly(5,4,bw=[400,200]GB/s)",
                                     "dragonfly(4,5,bw=[400,200]GB/s)",
                                     "unwind(switch2d(8,4,bw=[300,25]GB/s),degree=1)",
                                     "unwind(rfs(2,4,8,bw=[200,100,50]GB/s),degree=1)"};

std::vector<NodeId> OneChunkARank(const Topology& topology) {
  std::vector<NodeId> source;
  for (NodeId rank : topology.Ranks()) source.push_back(rank);
  return source;
}

TEST(TenPolicyTest, NamesAreUniqueAndFound) {
  std::vector<std::string> names;
  for (const TenPolicy& policy : TenPolicies()) {
    names.emplace_back(policy.name);
    EXPECT_FALSE(policy.description.empty());
    const Result<const ten::Policy*> found = ten::FindPolicy(policy.name);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ((*found)->name, policy.name);
  }
  EXPECT_THAT(names, ElementsAre("arrival", "rarest", "farthest", "random"));
  EXPECT_FALSE(ten::RandomPolicy().waits);  // the paper's rule
  const Result<const ten::Policy*> unknown = ten::FindPolicy("nearest");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(unknown.error().message,
            "unknown policy 'nearest'; accepted are arrival, rarest, farthest, random");
}

// On a ring of six, at rank 1, the link to 2. Chunk 1 has two hops to go behind it, to 4; chunk 0
// one, to 3; chunk 5 none: its farthest rank is 2.
TEST(TenPolicyTest, EachRuleByHand) {
  const Topology topology = Parse("ring(6)");
  const std::vector<NodeId> source = OneChunkARank(topology);
  const std::vector<ten::LinkTime> time(static_cast<size_t>(topology.num_links()));
  const auto make = [&](const ten::Policy& policy, uint64_t seed) {
    std::unique_ptr<ten::ChunkRule> rule = policy.make({topology, source, time, seed});
    for (uint32_t chunk = 0; chunk < 6; ++chunk) rule->Promised(chunk);
    for (const uint32_t chunk : {0U, 0U, 1U}) rule->Promised(chunk);
    return rule;
  };
  uint32_t to_2 = 0;
  for (LinkId link : topology.OutLinks(NodeId{1}))
    if (topology.head(link) == NodeId{2}) to_2 = static_cast<uint32_t>(link.value);
  const std::vector<uint32_t> candidates = {0, 5, 1};
  EXPECT_EQ(make(ten::ArrivalPolicy(), 1)->Choose(to_2, candidates), 0U);
  EXPECT_EQ(make(ten::RarestPolicy(), 1)->Choose(to_2, candidates), 5U);
  EXPECT_EQ(make(ten::FarthestPolicy(), 1)->Choose(to_2, candidates), 1U);
  const auto one = make(ten::RandomPolicy(), 7), same = make(ten::RandomPolicy(), 7);
  std::vector<int> count(6, 0);
  for (int i = 0; i < 300; ++i) {
    const uint32_t chunk = one->Choose(to_2, candidates);
    EXPECT_EQ(chunk, same->Choose(to_2, candidates));
    ++count[chunk];
  }
  EXPECT_EQ(count[2] + count[3] + count[4], 0);
  for (const size_t chunk : {0U, 1U, 5U}) EXPECT_GT(count[chunk], 60);
}

// Every policy, waiting or not, on networks of equal and of unequal links: proven, and the same
// again from the same seed.
TEST(TenPolicyProperty, EveryScheduleIsCorrectAndRepeatable) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const Topology topology = RandomNetwork(random, seed % 2 == 0);
    for (const TenPolicy& policy : TenPolicies()) {
      for (const Waiting waiting : {Waiting::kAuto, Waiting::kAlways, Waiting::kNever}) {
        for (const CollectiveKind kind :
             {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
              CollectiveKind::kBroadcast}) {
          SCOPED_TRACE(testing::Message() << seed << ' ' << policy.name << ' ' << Name(kind));
          const SynthOptions options{.chunks = static_cast<int32_t>(1 + seed % 3),
                                     .seed = 1 + seed % 5,
                                     .size_bytes = 1 << 20,
                                     .tries = 2,
                                     .policy = std::string(policy.name),
                                     .waiting = waiting};
          EXPECT_EQ(MustMake(topology, kind, options), MustMake(topology, kind, options));
        }
      }
    }
  }
}

TEST(TenPolicyTest, EveryPolicyReachesTheFewestRounds) {
  for (const TenPolicy& policy : TenPolicies()) {
    SCOPED_TRACE(policy.name);
    const SynthOptions options{.policy = std::string(policy.name)};
    const auto rounds = [&](const char* name) {
      return MustMake(Parse(name), CollectiveKind::kAllGather, options).num_steps;
    };
    EXPECT_EQ(rounds("complete(8)"), 1);
    EXPECT_EQ(rounds("mesh(4,4)"), 8);
  }
}

// Completion of the paper's rule (any chunk, never wait) over that of slow links that wait, both
// without the final pass.
double MeanGain(const Topology& topology, int32_t chunks, int seeds) {
  double sum = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto end = [&](const char* policy, Waiting waiting) {
      const SynthOptions options{.chunks = chunks,
                                 .seed = static_cast<uint64_t>(seed),
                                 .tries = 1,
                                 .policy = policy,
                                 .waiting = waiting,
                                 .final_pass = false};
      return static_cast<double>(
          CompletionPs(topology, MustMake(topology, CollectiveKind::kAllGather, options)));
    };
    sum += end("random", Waiting::kAuto) / end("rarest", Waiting::kAlways);
  }
  return sum / seeds;
}

TEST(TenPolicyTest, WaitingBeatsThePapersRuleOnUnequalLinks) {
  double all = 0;
  for (const char* name : kFigure15) {
    SCOPED_TRACE(name);
    const double gain = MeanGain(Parse(name), 4, 5);
    RecordProperty(name, std::to_string(gain));
    EXPECT_GE(gain, 1);
    all += gain / static_cast<double>(std::size(kFigure15));
  }
  EXPECT_GT(all, 1.1);
}

TEST(TenPolicyTest, OtherAlgorithmsRefuseIt) {
  const Topology topology = Parse("ring(4)");
  const auto error = [&](const char* name, CollectiveKind kind, const SynthOptions& options) {
    const Result<Schedule> made = RunSynthesizer(
        Algorithm(name), topology, classic_test::CollectiveFor(name, kind, 4), options);
    EXPECT_FALSE(made.has_value());
    return made ? std::string() : made.error().message;
  };
  using Kind = CollectiveKind;
  EXPECT_THAT(error("bfb", Kind::kAllGather, {.policy = "random"}),
              AllOf(HasSubstr("'bfb' has no policies"), HasSubstr("ten")));
  EXPECT_THAT(error("ring", Kind::kAllGather, {.waiting = Waiting::kNever}),
              HasSubstr("'ring' has no links that wait"));
  EXPECT_THAT(error("bfb", Kind::kAllGather, {.auto_chunks = true}),
              HasSubstr("'bfb' cannot choose the number of chunks; ten, tsmcf, mcf can"));
  EXPECT_THAT(error("ten", Kind::kAllGather, {.policy = "oldest"}),
              HasSubstr("unknown policy 'oldest'; accepted are arrival"));
  EXPECT_THAT(error("ten", Kind::kAllToAll, {.policy = "rarest"}),
              AllOf(HasSubstr("farthest first"), HasSubstr("'rarest'")));
  const Result<Schedule> blocks = RunSynthesizer(
      Algorithm("ten"), topology, *Collective::Make(Kind::kAllToAll, 4), {.policy = "farthest"});
  EXPECT_TRUE(blocks.has_value());
}

// 1, 2 and 3 are always tried. More tries make it no slower.
TEST(TenChunkCount, TheFastestOfAllTriedIsKept) {
  for (const char* name : {"mesh(3,4)", "ring(5)", "dragonfly(4,5,bw=[400,200]GB/s)",
                           "without(torus(4,4),links=3,seed=2)"}) {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kBroadcast, CollectiveKind::kReduceScatter}) {
      for (const int64_t size : {int64_t{1} << 12, int64_t{1} << 24}) {
        SCOPED_TRACE(testing::Message() << name << ' ' << Name(kind) << ' ' << size);
        const Topology topology = Parse(name);
        const Schedule best =
            MustMake(topology, kind, {.size_bytes = size, .tries = 2, .auto_chunks = true});
        const Rational best_s = PredictedSeconds(topology, best, size);
        const Schedule more =
            MustMake(topology, kind, {.size_bytes = size, .tries = 5, .auto_chunks = true});
        EXPECT_TRUE(PredictedSeconds(topology, more, size) <= best_s);
        for (const int32_t chunks : {1, 2, 3}) {
          const Schedule made =
              MustMake(topology, kind, {.chunks = chunks, .size_bytes = size, .tries = 2});
          EXPECT_TRUE(best_s <= PredictedSeconds(topology, made, size)) << chunks;
          if (made.units_per_shard == best.units_per_shard) {
            EXPECT_EQ(made, best);
          }
        }
      }
    }
  }
}

// A broadcast of much along a path is a pipeline, one of little is not.
TEST(TenChunkCount, MoreBytesMoreChunks) {
  const Topology topology = Parse("mesh(6)");
  const auto chunks = [&](int64_t size) {
    return MustMake(topology, CollectiveKind::kBroadcast, {.size_bytes = size, .auto_chunks = true})
        .units_per_shard;
  };
  EXPECT_EQ(chunks(1), 1);
  EXPECT_EQ(chunks(1 << 10), 1);
  EXPECT_GT(chunks(1 << 30), chunks(1 << 20));
}

}  // namespace
}  // namespace tutti

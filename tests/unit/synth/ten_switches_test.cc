// ten through switches: ports carry what they carry, and nothing is copied or added inside unless
// multicast is asked for.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "support/build.h"
#include "tutti/base/random.h"
#include "tutti/sched/transform.h"
#include "tutti/sim/simulator.h"
#include "unit/synth/ten_testing.h"

namespace tutti {
namespace {

using test_support::MustBuild;
using test_support::Parse;
using ::testing::HasSubstr;
using Kind = CollectiveKind;

constexpr Kind kSwitchedKinds[] = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                                   Kind::kBroadcast, Kind::kReduce,        Kind::kGather,
                                   Kind::kScatter,   Kind::kAllToAll};

// A star of three ranks, a second for a shard on each link.
Topology Star() { return Parse("switch(3,bw_per_link=1GB/s,alpha=0)"); }
constexpr int64_t kThreeGigabytes = 3'000'000'000;
constexpr int64_t kSecond = 1'000'000'000'000;

// Each rank sends its shard to one of the others and then to the other one: two seconds on its
// link, and one more until the last has left the switch.
TEST(TenSwitches, StarByHand) {
  const Schedule schedule =
      ten_test::MustMake(Star(), Kind::kAllGather, {.chunks = 1, .size_bytes = kThreeGigabytes});
  EXPECT_EQ(schedule.kind, ScheduleKind::kTimed);
  EXPECT_EQ(schedule.transfers.size(), 12u);  // 6 deliveries, 2 hops each
  EXPECT_EQ(CompletionPs(Star(), schedule), 3 * kSecond);
}

// With multicast once in, and twice out.
TEST(TenSwitches, StarWithMulticastByHand) {
  const Topology star = Star();
  const Schedule schedule = ten_test::MustMake(
      star, Kind::kBroadcast, {.chunks = 1, .size_bytes = kThreeGigabytes / 3, .multicast = true});
  EXPECT_EQ(schedule.transfers.size(), 3u);
  EXPECT_EQ(CompletionPs(star, schedule), 2 * kSecond);
  const Schedule plain =
      ten_test::MustMake(star, Kind::kBroadcast, {.chunks = 1, .size_bytes = kThreeGigabytes / 3});
  EXPECT_EQ(plain.transfers.size(), 4u);
  EXPECT_EQ(CompletionPs(star, plain), 3 * kSecond);
}

// A sum enters a switch after the one before has left it, and comes out of it as it went in.
TEST(TenSwitches, SumsPassOneByOne) {
  const Topology star = Star();
  const Schedule schedule =
      ten_test::MustMake(star, Kind::kReduceScatter, {.chunks = 4, .size_bytes = kThreeGigabytes});
  for (const Transfer& transfer : schedule.transfers)
    EXPECT_EQ(transfer.op,
              star.is_rank(star.head(transfer.link)) ? TransferOp::kReduce : TransferOp::kCopy);
}

// A star of four ranks that adds, a second for a shard on each link: up from three of them, each an
// instant of its own, and the sum down once. Without it three sums go down, one after the other.
TEST(TenSwitches, StarThatAddsByHand) {
  const SynthOptions options{.chunks = 1, .size_bytes = kThreeGigabytes / 3};
  const Topology adds = Parse("switch(4,bw_per_link=1GB/s,alpha=0,reduces=true)");
  const Schedule schedule = ten_test::MustMake(adds, Kind::kReduce, options);
  std::map<std::pair<bool, TransferOp>, int> count;  // by whether the head is a rank
  for (const Transfer& transfer : schedule.transfers)
    ++count[{adds.is_rank(adds.head(transfer.link)), transfer.op}];
  EXPECT_EQ((count[{false, TransferOp::kCopy}]), 1);
  EXPECT_EQ((count[{false, TransferOp::kReduce}]), 2);
  EXPECT_EQ((count[{true, TransferOp::kReduce}]), 1);
  EXPECT_EQ(schedule.transfers.size(), 4u);
  EXPECT_EQ(CompletionPs(adds, schedule), 2 * kSecond + 2);

  const Topology forwards = Parse("switch(4,bw_per_link=1GB/s,alpha=0)");
  const Schedule plain = ten_test::MustMake(forwards, Kind::kReduce, options);
  EXPECT_EQ(plain.transfers.size(), 6u);
  EXPECT_GE(CompletionPs(forwards, plain), 3 * kSecond);
}

TEST(TenSwitches, RefusesWhatItCannotDo) {
  const auto error = [](const std::string& algorithm, Kind kind, const SynthOptions& options) {
    const Collective collective = test_support::MustMake(kind, 3);
    const Result<Schedule> made =
        RunSynthesizer(classic_test::Algorithm(algorithm), Star(), collective, options);
    return made ? std::string("made") : made.error().message;
  };
  EXPECT_THAT(error("ten", Kind::kAllReduce, {.multicast = true}),
              HasSubstr("multicast serves all-gather and broadcast; of all-reduce"));
  EXPECT_THAT(error("ten", Kind::kAllToAll, {.multicast = true}), HasSubstr("of all-to-all"));
  EXPECT_THAT(error("forest", Kind::kAllGather, {.multicast = true}),
              HasSubstr("'forest' has no use for multicast; ten has"));
  EXPECT_THAT(error("ten", Kind::kAllGather, {.size_bytes = int64_t{1} << 62}),
              HasSubstr("a chunk takes longer than"));
}

// Ranks and switches in a tree of duplex cables, and more links at random, some one way only.
Topology RandomSwitched(Random& random) {
  const auto ranks = static_cast<int32_t>(2 + random.Below(5));
  const auto switches = static_cast<int32_t>(1 + random.Below(4));
  const int32_t nodes = ranks + switches;
  Topology::Builder builder(ranks, switches);
  const auto spec = [&random]() -> LinkSpec {
    constexpr int64_t kBandwidth[] = {25'000'000'000, 50'000'000'000, 300'000'000'000};
    return {.bandwidth = kBandwidth[random.Below(3)],
            .alpha_ps = static_cast<int64_t>(random.Below(3)) * 700'000};
  };
  // Switches first, so that most ranks hang on one.
  const auto node = [&](uint64_t number) {
    const auto n = static_cast<int32_t>(number);
    return NodeId{n < switches ? ranks + n : n - switches};
  };
  for (int32_t n = 1; n < nodes; ++n)
    builder.AddDuplex(node(static_cast<uint64_t>(n)), node(random.Below(static_cast<uint64_t>(n))),
                      spec());
  for (uint64_t extra = random.Below(static_cast<uint64_t>(nodes)); extra > 0; --extra) {
    const NodeId tail = node(random.Below(static_cast<uint64_t>(nodes)));
    const NodeId head = node(random.Below(static_cast<uint64_t>(nodes)));
    if (tail == head) continue;
    if (random.Below(2) == 0)
      builder.AddLink(tail, head, spec());
    else
      builder.AddDuplex(tail, head, spec());
  }
  return MustBuild(std::move(builder));
}

// What a switch gives out is what it took in, chunk by chunk.
void ExpectNothingCopied(const Topology& topology, const Schedule& schedule) {
  std::map<std::tuple<int32_t, int32_t, int32_t>, int> inside;  // switch, shard, chunk
  for (const Transfer& transfer : schedule.transfers) {
    const NodeId tail = topology.tail(transfer.link), head = topology.head(transfer.link);
    if (!topology.is_rank(head)) ++inside[{head.value, transfer.shard.value, transfer.begin}];
    if (!topology.is_rank(tail)) --inside[{tail.value, transfer.shard.value, transfer.begin}];
  }
  EXPECT_TRUE(std::all_of(inside.begin(), inside.end(),
                          [](const auto& chunk) { return chunk.second == 0; }));
}

// MustMake() has proven it.
void ExpectSound(const Topology& topology, const Schedule& schedule) {
  const Result<Bounds> bounds = ComputeBounds(topology, schedule.collective);
  ASSERT_TRUE(bounds.has_value());
  const Rational planned(CompletionPs(topology, schedule), 1'000'000'000'000);
  EXPECT_GE(planned, bounds->Limit(schedule.size_bytes));
  const Result<SimReport> report = Simulate(
      topology, schedule, {.size_bytes = schedule.size_bytes, .link_model = schedule.link_model});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_LE(report->time_s, planned.ToDouble() * (1 + 1e-9));
}

TEST(TenSwitchesProperty, ProvenNeverBelowTheBoundAndNothingCopied) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Topology topology = RandomSwitched(random);
    for (Kind kind : kSwitchedKinds) {
      SCOPED_TRACE(fmt::format("seed {} {}", seed, Name(kind)));
      const SynthOptions options{
          .chunks = static_cast<int32_t>(1 + random.Below(4)),
          .seed = seed,
          .size_bytes = static_cast<int64_t>(1 + random.Below(1 << 22)),
          .link_model = random.Below(2) == 0 ? LinkModel::kHeld : LinkModel::kPipelined,
          .tries = static_cast<int32_t>(1 + random.Below(5))};
      const auto root =
          static_cast<int32_t>(random.Below(static_cast<uint64_t>(topology.num_ranks())));
      const Schedule schedule = ten_test::MustMake(
          topology, kind, options, Collective::Make(kind, 2)->has_root() ? root : 0);
      ExpectSound(topology, schedule);
      ExpectNothingCopied(topology, schedule);
    }
  }
}

TEST(TenSwitchesProperty, MulticastIsProvenAndNeverBelowTheBound) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomSwitched(random);
    for (Kind kind : {Kind::kAllGather, Kind::kBroadcast}) {
      const Schedule schedule = ten_test::MustMake(
          topology, kind,
          {.chunks = 3, .seed = seed, .size_bytes = 1 << 20, .tries = 4, .multicast = true});
      ExpectSound(topology, schedule);
    }
  }
}

// The same networks, of whose switches some add.
Topology WithSomeThatReduce(const Topology& topology, Random& random) {
  Topology::Builder builder(topology.num_ranks(), topology.num_nodes() - topology.num_ranks());
  for (NodeId node : topology.Nodes())
    if (!topology.is_rank(node) && random.Below(3) > 0) builder.SetReduces(node);
  for (LinkId link : topology.Links())
    builder.AddLink(topology.tail(link), topology.head(link), topology.spec(link));
  return MustBuild(std::move(builder));
}

TEST(TenSwitchesProperty, SumsInSwitchesAreProvenAndNeverBelowTheBound) {
  int64_t added = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    const Topology plain = RandomSwitched(random);
    const Topology topology = WithSomeThatReduce(plain, random);
    for (Kind kind : {Kind::kReduceScatter, Kind::kAllReduce, Kind::kReduce, Kind::kAllGather}) {
      SCOPED_TRACE(fmt::format("seed {} {}", seed, Name(kind)));
      const SynthOptions options{
          .chunks = static_cast<int32_t>(1 + random.Below(4)),
          .seed = seed,
          .size_bytes = static_cast<int64_t>(1 + random.Below(1 << 22)),
          .link_model = random.Below(2) == 0 ? LinkModel::kHeld : LinkModel::kPipelined,
          .tries = static_cast<int32_t>(1 + random.Below(4))};
      const Schedule schedule = ten_test::MustMake(topology, kind, options);
      ExpectSound(topology, schedule);
      for (const Transfer& transfer : schedule.transfers)
        if (const NodeId head = topology.head(transfer.link);
            !topology.is_rank(head) && transfer.op == TransferOp::kReduce) {
          EXPECT_TRUE(topology.reduces(head));
          ++added;
        }
    }
  }
  EXPECT_GT(added, 100);
}

TEST(TenSwitches, SameInputSameSchedule) {
  const Topology topology = Parse("dgx_a100(2)");
  for (Kind kind : {Kind::kAllGather, Kind::kAllReduce})
    EXPECT_EQ(ten_test::MustMake(topology, kind, {.chunks = 4}),
              ten_test::MustMake(topology, kind, {.chunks = 4}));
}

// Of 256 MiB, shares of the proven bound.
TEST(TenSwitches, ComesNearTheBoundOnMachines) {
  const auto share = [](const std::string& expression, Kind kind) {
    const Topology topology = Parse(expression);
    const Schedule made = ten_test::MustMake(topology, kind, {.size_bytes = 1 << 28});
    const Rational limit = ComputeBounds(topology, made.collective)->Limit(1 << 28);
    return limit.ToDouble() * 1e12 / static_cast<double>(CompletionPs(topology, made));
  };
  EXPECT_GE(share("switch(8)", Kind::kAllGather), 0.97);
  EXPECT_GE(share("switch(8)", Kind::kAllReduce), 0.97);
  EXPECT_GE(share("switch(8)", Kind::kBroadcast), 0.92);
  EXPECT_GE(share("dgx_a100(2)", Kind::kAllGather), 0.85);
  EXPECT_GE(share("dgx_a100(2)", Kind::kBroadcast), 0.9);
  EXPECT_GE(share("rail(4,4)", Kind::kReduceScatter), 0.91);
  EXPECT_GE(share("fat_tree(4)", Kind::kAllGather), 0.94);
  EXPECT_GE(share("switch(8,reduces=true)", Kind::kReduceScatter), 0.9);
  EXPECT_GE(share("switch(8,reduces=true)", Kind::kReduce), 0.97);
  // Its two halves one after the other; the bound is of both at once.
  EXPECT_GE(share("switch(8,reduces=true)", Kind::kAllReduce), 0.55);
}

}  // namespace
}  // namespace tutti

// A chunk leaves a rank only after it has fully arrived there: what the published C++ code of
// [tacos] gets wrong on unequal links, where it re-labels a finished transfer with a chunk that its
// sender got after the link had started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "tutti/sched/transform.h"
#include "tutti/synth/ten.h"
#include "unit/synth/classic_support.h"
#include "unit/synth/ten_testing.h"

namespace tutti {
namespace {

using ten_test::ExpectProven;
using ten_test::MustMake;
using ten_test::RandomNetwork;
using test_support::Parse;

// Besides the verifier: a check of two maps, which knows copies only.
void ExpectCausal(const Topology& topology, const Schedule& schedule) {
  std::map<std::pair<int32_t, int32_t>, int64_t> held_from;  // (shard and unit, rank)
  const auto place = [&](const Transfer& transfer, NodeId rank) {
    return std::pair(transfer.shard.value * schedule.units_per_shard + transfer.begin, rank.value);
  };
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    held_from[place(transfer, topology.head(transfer.link))] =
        schedule.start_ps[i] + topology.alpha_ps(transfer.link) +
        TransferPs(schedule, transfer, topology.bandwidth(transfer.link));
  }
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const NodeId tail = topology.tail(transfer.link);
    if (transfer.shard.value == tail.value) continue;
    const auto from = held_from.find(place(transfer, tail));
    ASSERT_NE(from, held_from.end());
    EXPECT_LE(from->second, schedule.start_ps[i]);
  }
}

TEST(TenCausality, EveryScheduleOnUnequalLinksIsCausal) {
  using Kind = CollectiveKind;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(1000 + seed);
    const Topology topology = RandomNetwork(random, false);
    const std::vector<TenPolicy> policies = TenPolicies();
    for (Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce, Kind::kBroadcast,
                      Kind::kReduce}) {
      SCOPED_TRACE(testing::Message() << seed << ' ' << Name(kind));
      const SynthOptions options{
          .chunks = static_cast<int32_t>(1 + random.Below(5)),
          .seed = 1 + random.Below(1000),
          .size_bytes = int64_t{1} << (8 + random.Below(22)),
          .link_model = random.Below(2) == 0 ? LinkModel::kHeld : LinkModel::kPipelined,
          .tries = static_cast<int32_t>(1 + random.Below(4)),
          .policy = random.Below(2) == 0
                        ? std::string()
                        : std::string(policies[random.Below(policies.size())].name),
          .waiting = random.Below(2) == 0 ? Waiting::kAuto : Waiting::kNever,
          .final_pass = kind != Kind::kAllReduce && random.Below(2) == 0};
      const Schedule schedule = MustMake(topology, kind, options);
      if (kind == Kind::kAllGather && schedule.kind == ScheduleKind::kTimed)
        ExpectCausal(topology, schedule);
    }
  }
}

TEST(TenCausality, TheNetworksOfThePaper) {
  for (const char* name :
       {"dragonfly(5,4,bw=[400,200]GB/s)", "unwind(switch2d(8,4,bw=[300,25]GB/s),degree=1)",
        "unwind(rfs(2,4,4,bw=[200,100,50]GB/s),degree=2)", "mesh(5,5,bw=[35,80]GiB/s)"}) {
    SCOPED_TRACE(name);
    const Topology topology = Parse(name);
    for (uint64_t seed = 1; seed <= 4; ++seed)
      ExpectCausal(topology, MustMake(topology, CollectiveKind::kAllGather,
                                      {.chunks = 2, .seed = seed, .tries = 2}));
  }
}

// 0 -> 1 is fast, 0 -> 2 slow. 0 starts to send its own chunk to 2; meanwhile 1 brings 2 that
// chunk, and 0 gets chunk 1. When the slow link is done, its transfer is re-labelled as chunk 1,
// which 0 did not have when the link started: in 12 ns it cannot have carried it.
TEST(TenCausality, ARelabelledTransferIsRefused) {
  Topology::Builder builder(3);
  const LinkSpec fast{.bandwidth = 1'000'000'000'000, .alpha_ps = 0};
  const LinkSpec slow{.bandwidth = 1'000'000'000'000 / 12, .alpha_ps = 0};
  builder.AddDuplex(NodeId{0}, NodeId{1}, fast);
  builder.AddDuplex(NodeId{1}, NodeId{2}, fast);
  builder.AddDuplex(NodeId{0}, NodeId{2}, slow);
  const Topology topology = *std::move(builder).Build();
  const auto link = [&](int32_t tail, int32_t head) {
    for (LinkId id : topology.OutLinks(NodeId{tail}))
      if (topology.head(id) == NodeId{head}) return id;
    return LinkId{0};
  };
  // 1000 bytes a chunk: 1000 ps on a fast link, 12001 ps on a slow one.
  Schedule schedule{.collective = *Collective::Make(CollectiveKind::kAllGather, 3)};
  schedule.kind = ScheduleKind::kTimed;
  schedule.size_bytes = 3000;
  schedule.topology_fingerprint = topology.Fingerprint();
  const auto send = [&](int32_t chunk, int32_t tail, int32_t head, int64_t start) {
    schedule.transfers.push_back({ShardId{chunk}, link(tail, head), 0, 1, 0});
    schedule.start_ps.push_back(start);
  };
  send(0, 0, 1, 0);
  send(1, 1, 0, 0);
  send(1, 0, 2, 0);  // was chunk 0
  send(2, 2, 1, 0);
  send(0, 1, 2, 1000);
  send(2, 1, 0, 1000);
  const VerifyReport report = Verify(topology, schedule.collective, schedule);
  ASSERT_EQ(report.num_violations, 1);
  EXPECT_EQ(report.violations[0].kind, ViolationKind::kNotHeld);
  EXPECT_EQ(report.violations[0].transfer, 2);

  // The causal way: the slow link starts once 0 has got the chunk.
  schedule.start_ps[2] = 1000;
  std::swap(schedule.transfers[2], schedule.transfers[3]);
  std::swap(schedule.start_ps[2], schedule.start_ps[3]);
  ExpectProven(topology, schedule);
}

}  // namespace
}  // namespace tutti

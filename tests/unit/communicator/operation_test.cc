#include "operation.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tutti/lower/lowering.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(LoadTest, FansOutWhereOneSendsMuchToMany) {
  const auto fans_out = [](int64_t sent, int64_t received, int64_t most_to_one) {
    return Load{.sent = sent, .received = received, .most_to_one = most_to_one}.FansOut();
  };
  EXPECT_TRUE(fans_out(3 * kMiB, 0, kMiB));
  EXPECT_TRUE(fans_out(6 * kMiB, 2 * kMiB, kMiB));
  EXPECT_FALSE(fans_out(2 * kMiB, 0, kMiB));         // too few
  EXPECT_FALSE(fans_out(5 * kMiB, 2 * kMiB, kMiB));  // it receives much, too
  EXPECT_FALSE(fans_out(4 * kMiB, 0, kMiB - 1));     // too little
  EXPECT_FALSE(fans_out(0, 0, 0));
}

TEST(LoadTest, IsMoreThanCachedWhereAllRanksTogetherReceiveSixteenMebibytes) {
  EXPECT_TRUE((Load{.received = 8 * kMiB, .ranks = 2}.IsMoreThanCached()));
  EXPECT_FALSE((Load{.received = 8 * kMiB - 1, .ranks = 2}.IsMoreThanCached()));
  EXPECT_FALSE((Load{.sent = 64 * kMiB, .ranks = 8}.IsMoreThanCached()));
}

// Messages go nowhere.
class NoLanes final : public LaneSource {
 public:
  Lane& To(int32_t peer, int32_t) override { return lanes_[{peer, true}]; }
  Lane& From(int32_t peer, int32_t) override { return lanes_[{peer, false}]; }
  void SetSignature(uint64_t) override {}
  void LetReceiversCopy(bool let) override { let_.push_back(let); }
  const std::vector<bool>& let() const { return let_; }

 private:
  class Nowhere final : public Connection {
   public:
    bool TryPost(const Piece&) override { return false; }
    uint64_t released() const override { return 0; }
    bool Save(uint64_t, const Piece&) override { return false; }
    Progress TryTake(const Target&, int64_t&) override { return Progress::kNothing; }
  };
  struct ToNowhere : Lane {
    ToNowhere() { connection = &nowhere; }
    Nowhere nowhere;
  };
  std::map<std::pair<int32_t, bool>, ToNowhere> lanes_;
  std::vector<bool> let_;
};

bool RankLetsReceiversCopy(CollectiveKind kind, int32_t num_ranks, int32_t rank, int64_t count) {
  const Topology topology = ParseTopology("complete(" + std::to_string(num_ranks) + ")").value();
  const Schedule schedule = RunSynthesizer(*FindSynthesizer("bfb").value(), topology,
                                           Collective::Make(kind, num_ranks).value(), {})
                                .value();
  const Plan plan = Lower(topology, schedule).value();
  NoLanes lanes;
  PlanOperation operation(PlanProgram::Make(plan, {.count = count}).value(), rank, lanes);
  operation.Begin(nullptr, nullptr, nullptr);
  EXPECT_EQ(lanes.let().size(), 1u);
  return lanes.let().front();
}

TEST(ForwardsTest, WhatIsReceivedAndSentOnUnreduced) {
  const auto forwards = [](const char* network, const char* algorithm, CollectiveKind kind,
                           int32_t rank) {
    const Topology topology = ParseTopology(network).value();
    const Schedule schedule =
        RunSynthesizer(*FindSynthesizer(algorithm).value(), topology,
                       Collective::Make(kind, topology.num_ranks()).value(), {})
            .value();
    const Plan plan = Lower(topology, schedule).value();
    return Forwards(PlanProgram::Make(plan, {.count = 1 << 20}).value()->program, rank);
  };
  EXPECT_FALSE(forwards("complete(4)", "bfb", CollectiveKind::kAllGather, 1));
  EXPECT_FALSE(forwards("complete(4)", "bfb", CollectiveKind::kAllReduce, 1));
  EXPECT_TRUE(forwards("ring(4)", "ring", CollectiveKind::kAllGather, 1));
  EXPECT_TRUE(forwards("ring(4)", "ring", CollectiveKind::kAllReduce, 1));
  EXPECT_FALSE(forwards("ring(4)", "bfb", CollectiveKind::kBroadcast, 0));
  EXPECT_TRUE(forwards("ring(4)", "bfb", CollectiveKind::kBroadcast, 1));
}

// On a complete network each rank sends to every other at once.
TEST(PlanOperationTest, OnlyARootOfManyLetsReceiversCopy) {
  constexpr int64_t kCount = kMiB / 4;  // float
  EXPECT_TRUE(RankLetsReceiversCopy(CollectiveKind::kBroadcast, 6, 0, kCount));
  EXPECT_FALSE(RankLetsReceiversCopy(CollectiveKind::kBroadcast, 6, 1, kCount));
  EXPECT_FALSE(RankLetsReceiversCopy(CollectiveKind::kBroadcast, 6, 0, kCount / 2));
  EXPECT_FALSE(RankLetsReceiversCopy(CollectiveKind::kBroadcast, 3, 0, kCount));
  EXPECT_FALSE(RankLetsReceiversCopy(CollectiveKind::kAllGather, 6, 0, 6 * kCount));
  EXPECT_FALSE(RankLetsReceiversCopy(CollectiveKind::kAllReduce, 6, 0, 6 * kCount));
}

TEST(ExchangeOperationTest, OnlyWhoSendsToManyLetsReceiversCopy) {
  const auto lets = [](int32_t sends, int32_t receives) {
    std::vector<std::byte> data(static_cast<size_t>(kMiB));
    std::vector<Message> messages;
    for (int32_t peer = 1; peer <= sends; ++peer)
      messages.push_back({.peer = peer, .data = data.data(), .bytes = kMiB, .is_send = true});
    for (int32_t peer = 1; peer <= receives; ++peer)
      messages.push_back({.peer = peer, .data = data.data(), .bytes = kMiB});
    NoLanes lanes;
    ExchangeOperation operation(messages, 1, 0, lanes);
    EXPECT_EQ(operation.Poll(kMiB), Interpreter::Outcome::kStuck);
    EXPECT_EQ(operation.Poll(kMiB), Interpreter::Outcome::kStuck);
    EXPECT_EQ(lanes.let().size(), 1u);
    return lanes.let().front();
  };
  EXPECT_TRUE(lets(5, 0));
  EXPECT_TRUE(lets(5, 1));
  EXPECT_FALSE(lets(5, 5));
  EXPECT_FALSE(lets(1, 0));
  EXPECT_FALSE(lets(0, 5));
}

}  // namespace
}  // namespace tutti

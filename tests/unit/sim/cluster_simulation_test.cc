#include "tutti/sim/cluster_simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/build.h"
#include "tutti/base/random.h"
#include "tutti/sim/fair_sharing.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

using test_support::LinkOf;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two users on one link, one of them also on a slower one: 3 + 7.
TEST(FairSharing, LeavesToOthersWhatAUserCannotTake) {
  FairSharing sharing({10, 3});
  const int32_t a = sharing.Add(std::vector<ResourceUse>{{0, 1}});
  const int32_t b = sharing.Add(std::vector<ResourceUse>{{0, 1}, {1, 1}});
  sharing.Update();
  EXPECT_DOUBLE_EQ(sharing.rate(a), 7);
  EXPECT_DOUBLE_EQ(sharing.rate(b), 3);
  sharing.Remove(b);
  sharing.Update();
  EXPECT_DOUBLE_EQ(sharing.rate(a), 10);
}

// A ring that crosses a link twice has two of the three flows there.
TEST(FairSharing, CountsEveryUseOfAResource) {
  FairSharing sharing({12});
  const int32_t ring = sharing.Add(std::vector<ResourceUse>{{0, 1}, {0, 1}});
  const int32_t flow = sharing.Add(std::vector<ResourceUse>{{0, 1}});
  sharing.Update();
  EXPECT_DOUBLE_EQ(sharing.rate(ring), 4);
  EXPECT_DOUBLE_EQ(sharing.rate(flow), 4);
}

// Max-min: every user has a full resource on which nobody is faster, and none is overfull.
TEST(FairSharing, IsMaxMinFairOverSeeds) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto resources = static_cast<int32_t>(1 + random.Below(8));
    std::vector<double> capacity;
    for (int32_t i = 0; i < resources; ++i)
      capacity.push_back(static_cast<double>(1 + random.Below(20)));
    FairSharing sharing(capacity);
    std::vector<std::vector<ResourceUse>> uses;
    for (uint64_t users = 1 + random.Below(12); users > 0; --users) {
      std::vector<ResourceUse>& use = uses.emplace_back();
      for (uint64_t n = 1 + random.Below(4); n > 0; --n)
        use.push_back({static_cast<int32_t>(random.Below(static_cast<uint64_t>(resources))),
                       static_cast<double>(1 + random.Below(3))});
      sharing.Add(use);
    }
    sharing.Update();
    std::vector<double> used(capacity.size()), fastest(capacity.size());
    for (size_t user = 0; user < uses.size(); ++user)
      for (const ResourceUse& use : uses[user]) {
        const auto resource = static_cast<size_t>(use.resource);
        const double rate = sharing.rate(static_cast<int32_t>(user));
        used[resource] += use.share * rate;
        fastest[resource] = std::max(fastest[resource], rate);
      }
    for (size_t i = 0; i < capacity.size(); ++i) EXPECT_LE(used[i], capacity[i] * (1 + 1e-9));
    for (size_t user = 0; user < uses.size(); ++user)
      EXPECT_TRUE(std::any_of(uses[user].begin(), uses[user].end(), [&](const ResourceUse& use) {
        const auto resource = static_cast<size_t>(use.resource);
        return used[resource] >= capacity[resource] * (1 - 1e-9) &&
               sharing.rate(static_cast<int32_t>(user)) >= fastest[resource] * (1 - 1e-9);
      })) << user;
  }
}

using JobChannels = std::vector<std::vector<ClusterChannel>>;

// Given channels for each job, whatever its ranks are.
class Fixed : public ClusterStrategy {
 public:
  explicit Fixed(JobChannels channels) : channels_(std::move(channels)) {}
  Status Join(int32_t job, std::span<const NodeId>) override {
    joined.push_back(job);
    return {};
  }
  void Leave(int32_t job) override { left.push_back(job); }
  std::span<const ClusterChannel> Channels(int32_t job) override {
    return channels_[static_cast<size_t>(job)];
  }
  std::vector<int32_t> joined, left;

 private:
  JobChannels channels_;
};

ClusterReport MustSimulate(const Topology& topology, const std::vector<ClusterJob>& jobs,
                           ClusterStrategy& strategy, const ClusterOptions& options = {}) {
  const Result<ClusterReport> report = SimulateCluster(topology, jobs, options, strategy);
  EXPECT_TRUE(report) << report.error().message;
  return report.value_or(ClusterReport{});
}

// Both send 1000 bytes over one link of 1000 bytes/s. A from 0, B from 0.5: A has 500 bytes alone,
// then both have half: A ends at 1.5. B has then sent 500 and ends at 2.
TEST(ClusterSimulation, SharesALinkBetweenJobsByHand) {
  const Topology net = *ParseTopology("complete(4,bw=1e3,alpha=0)");
  const std::vector<ClusterChannel> channel = {{1000, {{LinkOf(net, 0, 1)}}}};
  Fixed strategy(JobChannels{channel, channel});
  const ClusterReport report = MustSimulate(net, {{0, 2, 1, 0}, {0.5, 2, 1, 0}}, strategy);
  EXPECT_NEAR(report.jobs[0].end_s, 1.5, 1e-9);
  EXPECT_NEAR(report.jobs[1].end_s, 2, 1e-9);
  EXPECT_NEAR(report.jobs[1].collective_s, 1.5, 1e-9);
  EXPECT_THAT(strategy.left, ElementsAre(0, 1));
}

// Three iterations of 1 s with gaps of 2 s end at 1 + 2 + 1 + 2 + 1. The second job wants more
// ranks than are free and waits for them; the third, which would fit, does not overtake it.
TEST(ClusterSimulation, IteratesWaitsAndKeepsTheOrder) {
  const Topology net = *ParseTopology("complete(4,bw=1e3,alpha=0)");
  const std::vector<ClusterChannel> channel = {{1000, {{LinkOf(net, 0, 1)}}}};
  Fixed strategy(JobChannels{channel, channel, channel});
  const ClusterReport report =
      MustSimulate(net, {{0, 2, 3, 2}, {1, 4, 1, 0}, {2, 1, 1, 0}}, strategy);
  EXPECT_NEAR(report.jobs[0].end_s, 7, 1e-9);
  EXPECT_NEAR(report.jobs[0].collective_s, 1, 1e-9);
  EXPECT_NEAR(report.jobs[1].start_s, 7, 1e-9);
  EXPECT_NEAR(report.jobs[2].start_s, 8, 1e-9);
  EXPECT_THAT(strategy.joined, ElementsAre(0, 1, 2));
}

// One ring with flows of 1 and 2 a link: lock step makes the lonely flow wait; independent flows
// end apart, and the collective with the last.
TEST(ClusterSimulation, CouplesTheFlowsOfARing) {
  const Topology net = *ParseTopology("complete(4,bw=1e3,alpha=0)");
  const LinkId shared = LinkOf(net, 0, 1), own = LinkOf(net, 1, 2);
  for (const FlowCoupling coupling : {FlowCoupling::kLockStep, FlowCoupling::kIndependent}) {
    Fixed strategy(
        JobChannels{{{1000, {{shared}, {own}}}}, {{2000, {{shared}}}}, {{1000, {{own}}}}});
    const ClusterReport report = MustSimulate(net, {{0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}},
                                              strategy, {.coupling = coupling});
    EXPECT_NEAR(report.jobs[0].end_s, 2, 1e-9);
    EXPECT_NEAR(report.jobs[1].end_s, 3, 1e-9);
    EXPECT_NEAR(report.jobs[2].end_s, 2, 1e-9);
  }
}

TEST(ClusterSimulation, WhatMovesNothingTakesNoTime) {
  const Topology net = *ParseTopology("complete(4)");
  Fixed strategy(JobChannels{{{1000, {}}}, {}});
  const ClusterReport report = MustSimulate(net, {{0, 4, 2, 1}, {0, 4, 1, 0}}, strategy);
  EXPECT_NEAR(report.jobs[0].end_s, 1, 1e-12);
  EXPECT_EQ(report.jobs[0].collective_s, 0);
  EXPECT_NEAR(report.time_s, 1, 1e-12);
}

TEST(ClusterSimulation, RefusesWhatCannotBe) {
  const Topology net = *ParseTopology("complete(4)");
  Fixed strategy(JobChannels{{}});
  const auto message = [&](const ClusterJob& job, const ClusterOptions& options = {}) {
    const Result<ClusterReport> report =
        SimulateCluster(net, std::vector<ClusterJob>{job}, options, strategy);
    return report ? std::string("accepted") : report.error().message;
  };
  EXPECT_THAT(message({0, 5, 1, 0}), HasSubstr("job 0 wants 5 ranks; the cluster has 4"));
  EXPECT_THAT(message({0, 0, 1, 0}), HasSubstr("wants 0 ranks"));
  EXPECT_THAT(message({0, 1, 0, 0}), HasSubstr("0 iterations"));
  EXPECT_THAT(message({-1, 1, 1, 0}), HasSubstr("arrives at -1 s"));
  EXPECT_THAT(message({0, 1, 1, 0}, {.rack = {0, 0}}), HasSubstr("2 ranks, wanted 4"));
}

TEST(ClusterSimulation, CompactFillsTheFewestRacks) {
  // Racks {0..3}, {4..7}, {8..11}; hosts of two. Free: 1; 4, 5, 6; 8 to 11.
  std::vector<bool> free(12, false);
  for (const int rank : {1, 4, 5, 6, 8, 9, 10, 11}) free[static_cast<size_t>(rank)] = true;
  ClusterOptions options{.placement = Placement::kCompact};
  for (int32_t rank = 0; rank < 12; ++rank) {
    options.rack.push_back(rank / 4);
    options.host.push_back(rank / 2);
  }
  Random random(1);
  // The rack with the least room that holds all; its fullest host first.
  EXPECT_THAT(*PlaceJob(free, 3, options, random), ElementsAre(NodeId{4}, NodeId{5}, NodeId{6}));
  EXPECT_THAT(*PlaceJob(free, 1, options, random), ElementsAre(NodeId{1}));
  EXPECT_THAT(*PlaceJob(free, 4, options, random),
              ElementsAre(NodeId{8}, NodeId{9}, NodeId{10}, NodeId{11}));
  EXPECT_THAT(*PlaceJob(free, 6, options, random),
              ElementsAre(NodeId{4}, NodeId{5}, NodeId{8}, NodeId{9}, NodeId{10}, NodeId{11}));
  EXPECT_FALSE(PlaceJob(free, 9, options, random));
}

TEST(ClusterSimulation, RandomPlacementTakesFreeRanksOnly) {
  std::vector<bool> free(40, true);
  for (size_t i = 0; i < 40; i += 3) free[i] = false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const auto ranks = *PlaceJob(free, 10, {}, random);
    EXPECT_EQ(ranks.size(), 10u);
    EXPECT_TRUE(std::is_sorted(ranks.begin(), ranks.end()));
    EXPECT_EQ(std::adjacent_find(ranks.begin(), ranks.end()), ranks.end());
    for (const NodeId rank : ranks) EXPECT_TRUE(free[rank.index()]);
  }
}

}  // namespace
}  // namespace tutti

#include "tutti/control/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "cluster_inputs.h"
#include "tutti/base/random.h"
#include "tutti/sim/fair_sharing.h"

namespace tutti {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of each job, the sum over its rings of what each moves when all jobs are busy, Mbit/s.
std::vector<double> BusBandwidths(const ClusterView& view, const PolicyOutput& output) {
  std::vector<double> capacity(view.bandwidths().begin(), view.bandwidths().end());
  FairSharing sharing(capacity);
  std::vector<std::pair<size_t, int32_t>> users;
  for (size_t j = 0; j < output.jobs.size(); ++j) {
    const JobStrategy& job = output.jobs[j];
    for (size_t c = 0; c < job.rings.size(); ++c) {
      std::vector<ResourceUse> uses;
      for (size_t i = 0; i < job.flows.size(); ++i)
        if (job.flows[i].channel == static_cast<int32_t>(c))
          for (const LinkId link :
               view.Path(job.flows[i].from_port, job.flows[i].to_port, job.routes[i]))
            uses.push_back({link.value, 1});
      users.emplace_back(j, sharing.Add(uses));
    }
  }
  sharing.Update();
  std::vector<double> busbw(output.jobs.size());
  for (const auto& [job, user] : users) busbw[job] += sharing.rate(user) * 8e-6;
  return busbw;
}

TEST(ClusterView, KnowsWhereTheTestbedsRanksAre) {
  const ClusterView view = Testbed();
  EXPECT_EQ(view.num_hosts(), 4);
  EXPECT_EQ(view.num_racks(), 2);
  EXPECT_EQ(view.place(5), (RankPlace{0, 1, 2, 1}));
  EXPECT_THAT(view.RanksOf(3), ElementsAre(6, 7));
  EXPECT_EQ(view.NumRoutes(view.RouteSet(0, 3)), 1);
  EXPECT_TRUE(view.Route(view.RouteSet(0, 3), 0).empty());
  EXPECT_EQ(view.NumRoutes(view.RouteSet(0, 4)), 2);
  EXPECT_EQ(view.Path(0, 4, 1).size(), 4u);
  EXPECT_EQ(view.PortBandwidth(0), 12'500'000);
}

TEST(ClusterView, FindsThePodsOfAFatTree) {
  const ClusterView view = ViewOf("fat_tree(4)");
  EXPECT_EQ(view.num_racks(), 8);
  EXPECT_EQ(view.place(3).pod, 0);
  EXPECT_EQ(view.place(4).pod, 1);
  EXPECT_EQ(view.NumRoutes(view.RouteSet(0, 2)), 2);   // over the two switches of the pod
  EXPECT_EQ(view.NumRoutes(view.RouteSet(0, 15)), 4);  // over the four cores
  EXPECT_EQ(view.Path(0, 15, 3).size(), 6u);
}

TEST(ClusterView, RefusesNetworksWithoutAFabric) {
  const Result<ClusterView> view = ClusterView::Make(*ParseTopology("ring(4)"));
  ASSERT_FALSE(view);
  EXPECT_THAT(view.error().message, HasSubstr("reaches no switch of a fabric"));
  const Result<ClusterView> apart = ClusterView::Make(*ParseTopology("dgx_a100(2)"));
  ASSERT_FALSE(apart);
  EXPECT_THAT(apart.error().message, HasSubstr("no route through the fabric"));
}

TEST(Rings, OfTheTestbedByHand) {
  const ClusterView view = Testbed();
  // Host 2, host 0 and host 1: the rack of rank 0 is first.
  const std::vector<int32_t> ranks = {4, 3, 0, 5, 1, 2};
  EXPECT_THAT(LocalityRings(view, ranks, 2),
              ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5), ElementsAre(1, 0, 3, 2, 5, 4)));
  Random random(1);
  const auto rings = LocalityRings(view, ranks, 1);
  EXPECT_THAT(
      FlowsOf(view, rings, NicChoice::kOwn, random),
      ElementsAre(RingFlow{0, 1, 2, 1, 2}, RingFlow{0, 3, 4, 3, 4}, RingFlow{0, 5, 0, 5, 0}));
  EXPECT_EQ(CrossRackFlows(view, rings[0]), 2);
}

// As many as racks, which no order beats, for every draw.
TEST(Rings, LocalityLeavesEachRackOnce) {
  const ClusterView view =
      ViewOf("cluster(boxes=24,gpus=4,nics=4,fabric=spine_leaf(6,4),oversubscription=2)");
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<int32_t> all(static_cast<size_t>(view.num_ranks()));
    std::iota(all.begin(), all.end(), 0);
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.Below(i)]);
    all.resize(1 + random.Below(40));
    std::vector<bool> racks(static_cast<size_t>(view.num_racks()));
    for (const int32_t rank : all) racks[static_cast<size_t>(view.place(rank).rack)] = true;
    const auto used = static_cast<int32_t>(std::count(racks.begin(), racks.end(), true));
    for (const std::vector<int32_t>& ring : LocalityRings(view, all, 3)) {
      EXPECT_TRUE(std::is_permutation(ring.begin(), ring.end(), all.begin(), all.end()));
      EXPECT_EQ(CrossRackFlows(view, ring), used > 1 ? used : 0);
    }
    for (const std::vector<int32_t>& ring : RandomRings(all, 3, random)) {
      EXPECT_TRUE(std::is_permutation(ring.begin(), ring.end(), all.begin(), all.end()));
      EXPECT_GE(CrossRackFlows(view, ring), used > 1 ? used : 0);
    }
  }
}

TEST(Rings, TurnsSpreadExitsOverAllNicsOfAHost) {
  const ClusterView view =
      ViewOf("cluster(boxes=8,gpus=8,nics=8,fabric=spine_leaf(4,4),oversubscription=2)");
  std::vector<int32_t> ranks = {3};  // one device of host 0, all of host 5
  for (int32_t rank = 40; rank < 48; ++rank) ranks.push_back(rank);
  Random random(1);
  const auto rings = LocalityRings(view, ranks, 16);
  for (const NicChoice nics : {NicChoice::kOwn, NicChoice::kBalanced}) {
    std::vector<int> out(64), in(64);
    for (const RingFlow& flow : FlowsOf(view, rings, nics, random)) {
      ++out[static_cast<size_t>(flow.from_port)];
      ++in[static_cast<size_t>(flow.to_port)];
    }
    for (size_t rank = 40; rank < 48; ++rank) {
      EXPECT_EQ(out[rank], 2);
      EXPECT_EQ(in[rank], 2);
    }
    EXPECT_EQ(out[3], nics == NicChoice::kOwn ? 16 : 2);
  }
}

struct SharedCase {
  const char* name;
  std::vector<std::vector<int32_t>> jobs;  // their ranks
  std::vector<double> busbw;               // fair, Mbit/s
};

std::vector<SharedCase> SetUps() {
  return {{"1", {{0, 1, 4, 5}, {2, 3, 6, 7}}, {100, 100}},
          {"2", {{0, 2, 4, 6}, {1, 5}, {3, 7}}, {200.0 / 3, 200.0 / 3, 200.0 / 3}},
          {"3", {{0, 1, 4, 5}, {2, 6}, {3, 7}}, {100, 50, 50}},
          {"4", {{0, 2, 4, 6}, {1, 3, 5, 7}}, {100, 100}}};
}

PolicyInput InputOf(const ClusterView& view, const std::vector<std::vector<int32_t>>& jobs) {
  PolicyInput input{.view = &view, .jobs = {}, .nics = NicChoice::kOwn, .background = {}};
  for (size_t j = 0; j < jobs.size(); ++j)
    input.jobs.push_back({static_cast<int32_t>(j), jobs[j], 0, {}});
  return input;
}

TEST(FairFlowPolicy, GivesTheFairBandwidthsOfTheFourSetUps) {
  const ClusterView view = Testbed();
  for (const SharedCase& set_up : SetUps()) {
    SCOPED_TRACE(set_up.name);
    const PolicyOutput output = MustDecide("ffa", InputOf(view, set_up.jobs));
    const std::vector<double> busbw = BusBandwidths(view, output);
    for (size_t j = 0; j < busbw.size(); ++j) EXPECT_NEAR(busbw[j], set_up.busbw[j], 1e-6) << j;
  }
}

// The preferred job has the first route to itself: both of its flows a rack fit there and on the
// second one only what is left of it.
TEST(PriorityFlowPolicy, KeepsOthersOffReservedRoutes) {
  const ClusterView view = Testbed();
  for (const SharedCase& set_up : SetUps()) {
    SCOPED_TRACE(set_up.name);
    PolicyInput input = InputOf(view, set_up.jobs);
    input.jobs[0].priority = 1;
    input.reserved_routes = 1;
    const PolicyOutput output = MustDecide("pfa", input);
    for (size_t j = 1; j < output.jobs.size(); ++j)
      for (size_t i = 0; i < output.jobs[j].flows.size(); ++i) {
        const RingFlow& flow = output.jobs[j].flows[i];
        if (view.NumRoutes(view.RouteSet(flow.from_port, flow.to_port)) > 1) {
          EXPECT_EQ(output.jobs[j].routes[i], 1);
        }
      }
    const std::vector<double> fair = BusBandwidths(view, MustDecide("ffa", input));
    EXPECT_GE(BusBandwidths(view, output)[0], fair[0] - 1e-6);
  }
  // Everything reserved: the class that is left out is named.
  PolicyInput input = InputOf(view, SetUps()[0].jobs);
  input.reserved_routes = 2;
  const Result<PolicyOutput> refused = Decide(**FindPolicy("pfa"), input);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(refused.error().message, HasSubstr("class 0 of job 0 is left without a route"));
}

// Jobs are told apart by their numbers: listed in another order they get the same.
TEST(Policies, DoNotDependOnTheOrderOfTheList) {
  const ClusterView view =
      ViewOf("cluster(boxes=16,gpus=4,nics=4,fabric=spine_leaf(4,4),oversubscription=2)");
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<int32_t> all(64);
    std::iota(all.begin(), all.end(), 0);
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.Below(i)]);
    PolicyInput input{
        .view = &view, .jobs = {}, .background = {}, .reserved_routes = 1, .seed = seed};
    for (int32_t j = 0; j < 4; ++j)
      input.jobs.push_back({j,
                            {all.begin() + j * 16, all.begin() + j * 16 + 12},
                            static_cast<int32_t>(random.Below(3)),
                            {},
                            static_cast<int32_t>(1 + random.Below(4)),
                            static_cast<int64_t>(random.Below(3)),
                            static_cast<int32_t>(random.Below(3)) - 1,
                            static_cast<int64_t>(random.Below(2))});
    PolicyInput turned = input;
    std::reverse(turned.jobs.begin(), turned.jobs.end());
    for (const Policy& policy : Policies()) {
      SCOPED_TRACE(policy.name);
      const PolicyOutput first = MustDecide(policy.name, input);
      const PolicyOutput second = MustDecide(policy.name, turned);
      for (size_t j = 0; j < 4; ++j) {
        EXPECT_EQ(first.jobs[j].rings, second.jobs[3 - j].rings);
        EXPECT_EQ(first.jobs[j].flows, second.jobs[3 - j].flows);
        EXPECT_EQ(first.jobs[j].routes, second.jobs[3 - j].routes);
      }
    }
  }
}

TEST(Policies, RefuseWrongJobs) {
  const ClusterView view = Testbed();
  const auto message = [&](PolicyInput input) {
    const Result<PolicyOutput> output = Decide(Policies().front(), input);
    return output ? std::string("accepted") : output.error().message;
  };
  EXPECT_THAT(message(InputOf(view, {{}})), HasSubstr("job 0 has no ranks"));
  EXPECT_THAT(message(InputOf(view, {{1, 8}})), HasSubstr("names rank 8, wanted 0 to 7"));
  EXPECT_THAT(message(InputOf(view, {{-1, 2}})), HasSubstr("names rank -1"));
  EXPECT_THAT(message(InputOf(view, {{2, 1, 2}})), HasSubstr("names rank 2 twice"));
  PolicyInput input = InputOf(view, {{0}, {1}});
  input.jobs[1].id = 0;
  EXPECT_THAT(message(input), HasSubstr("two jobs have the number 0"));
  input = InputOf(view, {{0}});
  input.channels = 1025;
  EXPECT_THAT(message(input), HasSubstr("1025 channels"));
  input.channels = 1;
  input.background = {1};
  EXPECT_THAT(message(input), HasSubstr("background of 1 links"));
  input = InputOf(view, {{0, 4}});
  input.jobs[0].weight = 0;
  EXPECT_THAT(message(input), HasSubstr("job 0 has weight 0, wanted 1 to 1000000"));
  input.jobs[0].weight = 1000001;
  EXPECT_THAT(message(input), HasSubstr("job 0 has weight 1000001"));
  for (int32_t fault = 0; fault < 3; ++fault) {
    input = InputOf(view, {{0, 4}});
    if (fault == 0) input.jobs[0].deadline_ns = -1;
    if (fault == 1) input.jobs[0].guaranteed = -1;
    if (fault == 2) input.jobs[0].tenant = -2;
    EXPECT_THAT(message(input), HasSubstr("wanted 0 or more, 0 or more and -1 or more")) << fault;
  }
  EXPECT_THAT(FindPolicy("fffa").error().message, HasSubstr("nearest: ffa"));
}

// A provider's own that is wrong spoils no more than its own answer.
TEST(Policies, WhatOneThrowsIsItsAnswer) {
  const ClusterView view = ViewOf("cluster(boxes=2,gpus=1,nics=1,fabric=spine_leaf(1,2))");
  const Policy wrong{"own", "throws", RingOrder::kLocality,
                     [](const PolicyInput& input, PolicyOutput&) -> Status {
                       return InvalidArgument(std::to_string(input.background.at(7)));
                     }};
  const auto output = Decide(
      wrong,
      {.view = &view, .jobs = {{.id = 0, .ranks = {0, 1}, .running = {}}}, .background = {}});
  ASSERT_FALSE(output);
  EXPECT_THAT(output.error().message, HasSubstr("policy own failed: vector"));
}

// A connection stays where it is, and over connections routes are used alike.
TEST(Ecmp, SpreadsConnectionsOverRoutes) {
  const ClusterView view =
      ViewOf("cluster(boxes=8,gpus=1,nics=1,fabric=spine_leaf(2,4),oversubscription=2)");
  std::vector<int> used(4);
  for (uint64_t connection = 0; connection < 4000; ++connection) {
    const RingFlow flow{0, 0, 4, 0, 4};
    const int32_t route = EcmpRoute(view, flow, connection, 7);
    EXPECT_EQ(route, EcmpRoute(view, flow, connection, 7));
    ++used[static_cast<size_t>(route)];
  }
  for (const int count : used) EXPECT_NEAR(count, 1000, 120);
}

// A seed is a draw of its own, not that of another seed with ports exchanged: the sorted counts of flows
// by spine of all pairs are hardly ever alike.
TEST(Ecmp, SeedsAreNoPermutationsOfPorts) {
  const ClusterView view =
      ViewOf("cluster(boxes=16,gpus=1,nics=1,fabric=spine_leaf(2,4),oversubscription=2)");
  std::set<std::vector<int>> counts;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    std::vector<int> used(8 * 4);
    for (int32_t from = 0; from < 8; ++from)
      for (int32_t to = 8; to < 16; ++to)
        ++used[static_cast<size_t>(from * 4 +
                                   EcmpRoute(view, RingFlow{0, from, to, from, to}, 0, seed))];
    std::sort(used.begin(), used.end());
    counts.insert(used);
  }
  EXPECT_GE(counts.size(), 12u);
}

}  // namespace
}  // namespace tutti

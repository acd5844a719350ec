#include "tutti/sim/connection_simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/parse.h"
#include "tutti/base/random.h"

namespace tutti {
namespace {

using test_support::Parse;
using ::testing::HasSubstr;

LinkId LinkBetween(const Topology& network, const std::string& from, const std::string& to) {
  for (const LinkId link : network.Links())
    if (network.node_name(network.tail(link)) == from &&
        network.node_name(network.head(link)) == to)
      return link;
  ADD_FAILURE() << from << " -> " << to;
  return LinkId{0};
}

// The path from host a to host b, by spine s where they are on different leaves of two hosts each.
std::vector<LinkId> PathOf(const Topology& network, int a, int b, int s) {
  const auto host = [](int i) { return "host" + std::to_string(i); };
  const auto leaf = [](int i) { return "leaf" + std::to_string(i / 2); };
  const std::string spine = "spine" + std::to_string(s);
  if (a / 2 == b / 2)
    return {LinkBetween(network, host(a), leaf(a)), LinkBetween(network, leaf(b), host(b))};
  return {LinkBetween(network, host(a), leaf(a)), LinkBetween(network, leaf(a), spine),
          LinkBetween(network, spine, leaf(b)), LinkBetween(network, leaf(b), host(b))};
}

// Of the network's own links, in one step, each the shard of its tail.
Schedule AllAtOnce(const Topology& logical, int32_t steps) {
  Schedule schedule{.collective =
                        *Collective::Make(CollectiveKind::kAllGather, logical.num_ranks())};
  schedule.num_steps = steps;
  schedule.topology_fingerprint = logical.Fingerprint();
  for (int32_t step = 0; step < steps; ++step)
    for (const LinkId link : logical.Links())
      schedule.transfers.push_back({.shard = ShardId{logical.tail(link).value},
                                    .link = link,
                                    .begin = 0,
                                    .end = 1,
                                    .step = step});
  return schedule;
}

// Two leaves of two hosts under two spines, all links 1 GB/s with 1 us. Hosts 0 and 1 send 1 MB each
// to hosts 2 and 3. By one spine each: 1 ms. Both by spine 0: half the bandwidth each, 2 ms. The path
// has four links: 4 us.
TEST(ConnectionSimulator, TwoFlowsOnOneSpineHaveHalfEach) {
  const Topology switched = Parse("spine_leaf(2,2,2,bw=1GB/s,alpha=1us)");
  const Topology logical = Parse("bipartite(2,bw=1GB/s)");
  Schedule schedule = AllAtOnce(logical, 1);
  std::erase_if(schedule.transfers, [&](const Transfer& transfer) {
    return logical.tail(transfer.link).value > 1 ||
           logical.head(transfer.link).value != logical.tail(transfer.link).value + 2;
  });
  ASSERT_EQ(schedule.transfers.size(), 2u);
  for (const bool collide : {false, true}) {
    SCOPED_TRACE(collide);
    std::vector<std::vector<LinkId>> paths;
    for (const LinkId link : logical.Links()) {
      const int a = logical.tail(link).value, b = logical.head(link).value;
      paths.push_back(PathOf(switched, a, b, collide ? 0 : a % 2));
    }
    const auto report = SimulateConnections(logical, schedule, switched, paths, 4'000'000);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_NEAR(report->time_s, (collide ? 2e-3 : 1e-3) + 4e-6, 1e-12);
    EXPECT_EQ(report->max_on_a_link, collide ? 2 : 1);
    EXPECT_NEAR(report->algbw, 4e6 / report->time_s, 1e-3);
    EXPECT_NEAR(report->busbw, report->algbw * 3 / 4, 1e-3);
    const LinkId shared = LinkBetween(switched, "leaf0", "spine0");
    EXPECT_NEAR(report->link_bytes[shared.index()], collide ? 2e6 : 1e6, 1e-3);
  }
}

// One of three flows on the same spine is done first; the others then have more.
TEST(ConnectionSimulator, RatesGrowWhenAFlowEnds) {
  const Topology switched = Parse("spine_leaf(2,1,2,bw=1GB/s,alpha=1us)");
  const Topology logical = Parse("bipartite(2,bw=1GB/s)");
  Schedule schedule = AllAtOnce(logical, 1);
  schedule.units_per_shard = 4;
  std::erase_if(schedule.transfers, [&](const Transfer& transfer) {
    return logical.tail(transfer.link).value > 1 ||
           logical.head(transfer.link).value != logical.tail(transfer.link).value + 2;
  });
  schedule.transfers[0].end = 1;  // a quarter of its shard
  schedule.transfers[1].end = 4;
  std::vector<std::vector<LinkId>> paths;
  for (const LinkId link : logical.Links())
    paths.push_back(PathOf(switched, logical.tail(link).value, logical.head(link).value, 0));
  // 250 kB at 0.5 GB/s: 0.5 ms; then 750 kB at 1 GB/s.
  const auto report = SimulateConnections(logical, schedule, switched, paths, 4'000'000);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_NEAR(report->time_s, 1.25e-3 + 4e-6, 1e-12);
  EXPECT_EQ(report->events, 2);
}

// A host limit holds for what begins at a rank and for what ends there: 1 MB at 0.5 GB/s, though links
// have 1 GB/s; two that begin at one rank share it.
TEST(ConnectionSimulator, KeepsToHostLimits) {
  const Topology switched = Parse("spine_leaf(2,2,2,bw=1GB/s,alpha=1us,host_bw=500MB/s)");
  const Topology logical = Parse("complete(4)");
  for (const int flows : {1, 2}) {
    SCOPED_TRACE(flows);
    Schedule schedule = AllAtOnce(logical, 1);
    std::erase_if(schedule.transfers, [&](const Transfer& transfer) {
      return logical.tail(transfer.link).value != 0 || logical.head(transfer.link).value > flows;
    });
    std::vector<std::vector<LinkId>> paths;
    for (const LinkId link : logical.Links())
      paths.push_back(PathOf(switched, logical.tail(link).value, logical.head(link).value, 0));
    const auto report = SimulateConnections(logical, schedule, switched, paths, 4'000'000);
    ASSERT_TRUE(report) << report.error().message;
    // The last of two to arrive crosses the spine.
    EXPECT_NEAR(report->time_s, flows * 2e-3 + (flows == 1 ? 2e-6 : 4e-6), 1e-12);
  }
}

// Below what a step's busiest link needs no draw of paths is, and equal steps take equal times.
TEST(ConnectionSimulator, KeepsToTheBusiestLink) {
  const Topology switched = Parse("spine_leaf(4,2,2,bw=[1,1,3]GB/s,alpha=2us)");
  const Topology logical = Parse("complete(8)");
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<std::vector<LinkId>> paths;
    for (const LinkId link : logical.Links())
      paths.push_back(PathOf(switched, logical.tail(link).value, logical.head(link).value,
                             static_cast<int>(random.Below(2))));
    const auto one =
        SimulateConnections(logical, AllAtOnce(logical, 1), switched, paths, 8'000'000);
    const auto three =
        SimulateConnections(logical, AllAtOnce(logical, 3), switched, paths, 8'000'000);
    ASSERT_TRUE(one && three);
    EXPECT_NEAR(three->time_s, 3 * one->time_s, 1e-12);
    double busiest_s = 0, bytes = 0;
    for (const LinkId link : switched.Links()) {
      busiest_s = std::max(
          busiest_s, one->link_bytes[link.index()] / static_cast<double>(switched.bandwidth(link)));
      if (switched.is_rank(switched.tail(link))) bytes += one->link_bytes[link.index()];
    }
    EXPECT_NEAR(bytes, 8 * 7 * 1e6, 1);
    EXPECT_GE(one->time_s, busiest_s);
    // Max-min shares keep a busiest link busy until it is done: at most as many times longer as
    // there are flows on it.
    EXPECT_LE(one->time_s, busiest_s * one->max_on_a_link);
  }
}

TEST(ConnectionSimulator, RefusesWhatItCannotTime) {
  const Topology switched = Parse("spine_leaf(2,2,2)"), logical = Parse("ring(4)");
  std::vector<std::vector<LinkId>> paths;
  for (const LinkId link : logical.Links())
    paths.push_back(PathOf(switched, logical.tail(link).value, logical.head(link).value, 0));
  const Schedule good = AllAtOnce(logical, 1);
  const auto message = [&](const Schedule& schedule, const Topology& over,
                           const std::vector<std::vector<LinkId>>& on, int64_t size) {
    const auto report = SimulateConnections(logical, schedule, over, on, size);
    return report ? std::string("accepted") : report.error().message;
  };
  EXPECT_EQ(message(good, switched, paths, 1), "accepted");
  EXPECT_THAT(message(good, switched, paths, 0), HasSubstr("at least 1 byte"));
  EXPECT_THAT(message(good, Parse("spine_leaf(2,2,3)"), paths, 1),
              HasSubstr("is of 4 ranks, spine_leaf(2,2,3) has 6"));
  Schedule bad = good;
  bad.topology_fingerprint ^= 1;
  EXPECT_THAT(message(bad, switched, paths, 1), HasSubstr("made for another network"));
  bad = good;
  bad.kind = ScheduleKind::kTimed;
  EXPECT_THAT(message(bad, switched, paths, 1), HasSubstr("a timed schedule"));
  auto wrong = paths;
  wrong.pop_back();
  EXPECT_THAT(message(good, switched, wrong, 1), HasSubstr("7 paths, wanted one for each of 8"));
  wrong = paths;
  wrong[3].pop_back();
  EXPECT_THAT(message(good, switched, wrong, 1), HasSubstr("the path of link 3 ends at leaf"));
  wrong = paths;
  wrong[2].erase(wrong[2].begin());
  EXPECT_THAT(message(good, switched, wrong, 1), HasSubstr("the path of link 2 breaks at link"));
}

}  // namespace
}  // namespace tutti

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fake_cluster.h"
#include "network_left.h"
#include "tutti/base/random.h"
#include "tutti/bounds/bounds.h"
#include "tutti/controller/requests.h"
#include "tutti/store/store.h"
#include "tutti/verify/verifier.h"

namespace tutti::controller {
namespace {

// The route from a rank of H0 to one of H2 over the first spine gives no answer.
TEST(ControllerTest, LostRoutesAreLeftByAllAndTakenAgainWhenTheyAreBack) {
  FakeCluster cluster = ThirdSetUp();
  Requests requests(ControllerOf(cluster));
  EXPECT_EQ(requests.FollowChanges().size(), 3u);
  const auto ports = [&cluster](const std::string& label) {
    std::map<std::pair<bool, int>, int> flows;  // out of the first rack, first port
    const Job& job = cluster.jobs.at(label);
    for (const Json& flow : job.flows)
      if (flow.contains("ports")) {
        ++flows[{job.ranks[flow.at("from").get<size_t>()].first < 2, flow.at("ports").at(0)}];
        EXPECT_EQ(flow.at("others").size(), 1u);
        EXPECT_EQ(flow.at("others").at(0).at(0), flow.at("ports").at(0) == 50000 ? 51000 : 50000);
      }
    return flows;
  };
  const auto whole = ports("c-a");
  EXPECT_EQ(whole.size(), 4u);
  cluster.jobs["c-a"].lost_paths = {
      {{"from", 0}, {"to", 2}, {"channel", 0}, {"ports", {50000, 1000}}}};
  const std::vector<std::string> told = requests.FollowChanges();
  ASSERT_EQ(told.size(), 4u) << testing::PrintToString(told);
  EXPECT_EQ(told[0], "lost: leaf0 -> spine0, spine0 -> leaf1");
  // Of all tenants, and only that way: the other direction goes on over both spines.
  for (const char* label : {"c-a", "c-b", "c-c"}) {
    const auto left = ports(label);
    EXPECT_EQ(left.count({true, 50000}), 0u) << label;
    EXPECT_GT(left.count({true, 51000}), 0u) << label;
    EXPECT_GT(left.count({false, 50000}), 0u) << label;
  }
  EXPECT_EQ(requests.FollowChanges().size(), 0u);
  cluster.jobs["c-a"].lost_paths = Json::array();
  EXPECT_EQ(requests.FollowChanges().at(0), "all links are back");
  EXPECT_EQ(ports("c-a"), whole);
  // Routes that are none, ranks that are none, and the network's choice say nothing of links.
  for (const Json& flow :
       {Json{{"from", 9}, {"to", 2}, {"ports", {50000, 1000}}},
        Json{{"from", 0}, {"to", -1}, {"ports", {50000, 1000}}}, Json{{"from", 0}, {"to", 2}},
        Json{{"from", 0}, {"to", 1}, {"ports", {51000, 1000}}}}) {
    cluster.jobs["c-a"].lost_paths = {flow};
    EXPECT_EQ(requests.FollowChanges().size(), 0u) << flow;
  }
}

// Eight ranks, both devices of four hosts. What a schedule loads the links of the network with, over the routes that its
// connections are pinned to, is within 5 % of what no schedule can beat on the network that is left. When the link is back the
// rings are, too.
TEST(ControllerTest, LostLinksGiveAScheduleForTheNetworkThatIsLeft) {
  FakeCluster cluster;
  cluster.jobs["c-a"] = {"c-a", "A", {}};
  for (int host = 0; host < 4; ++host)
    for (int device = 0; device < 2; ++device) cluster.jobs["c-a"].ranks.emplace_back(host, device);
  Requests requests(ControllerOf(cluster));
  EXPECT_EQ(requests.FollowChanges().size(), 1u);
  EXPECT_EQ(cluster.jobs["c-a"].strategy, "ffa all-reduce");
  cluster.jobs["c-a"].lost_paths = {
      {{"from", 0}, {"to", 4}, {"channel", 0}, {"ports", {50000, 1000}}}};
  EXPECT_EQ(requests.FollowChanges().size(), 2u);
  EXPECT_THAT(cluster.jobs["c-a"].strategy, testing::StartsWith("ffa on what is left ("));
  EXPECT_EQ(requests.FollowChanges().size(), 0u);

  const ClusterConfig config = Config();
  const std::vector<int32_t> ranks = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<int64_t> bandwidth(config.view.bandwidths().begin(), config.view.bandwidths().end());
  for (const LinkId link : config.view.Route(config.view.RouteSet(0, 4), 0))
    bandwidth[link.index()] = 0;
  std::vector<LinkId> origin;
  const Result<Topology> left = NetworkLeft(config, bandwidth, ranks, origin);
  ASSERT_TRUE(left) << left.error().message;
  std::map<std::tuple<int, int, int>, int> route_of;
  for (const Json& flow : cluster.jobs["c-a"].flows)
    route_of[{flow.at("from"), flow.at("to"), flow.at("channel")}] =
        !flow.contains("ports") || flow.at("ports").at(0) == 50000 ? 0 : 1;
  std::vector<CollectiveKind> kinds;
  for (const Json& each : cluster.jobs["c-a"].schedules) {
    const Result<ScheduleFile> file = ScheduleFromJson(each.at("text").get<std::string>());
    ASSERT_TRUE(file) << file.error().message;
    const Schedule& schedule = file->schedule;
    ASSERT_TRUE(Verify(file->topology, schedule.collective, schedule).verified());
    kinds.push_back(schedule.collective.kind());
    std::map<std::pair<int32_t, int32_t>, int> seen;
    std::vector<int> channel_of;
    for (const LinkId link : file->topology.Links())
      channel_of.push_back(
          seen[{file->topology.tail(link).value, file->topology.head(link).value}]++);
    std::map<int32_t, int64_t> load;
    for (const Transfer& transfer : schedule.transfers) {
      const int32_t from = file->topology.tail(transfer.link).value;
      const int32_t to = file->topology.head(transfer.link).value;
      if (from / 2 == to / 2) continue;  // inside a host
      const auto route = route_of.find({from, to, channel_of[transfer.link.index()]});
      ASSERT_NE(route, route_of.end()) << from << " -> " << to;
      for (const LinkId link : config.view.Path(from, to, route->second)) {
        EXPECT_GT(bandwidth[link.index()], 0) << "it takes the lost link";
        load[link.value] += transfer.units();
      }
    }
    Rational busiest;
    for (const auto& [link, units] : load)
      busiest = std::max(busiest, Rational(units, int64_t{schedule.units_per_shard} * 8) /
                                      Rational(bandwidth[static_cast<size_t>(link)]));
    const Result<Bounds> bounds = ComputeBounds(*left, schedule.collective);
    ASSERT_TRUE(bounds);
    EXPECT_GE(busiest, bounds->seconds_per_byte);
    EXPECT_LE(busiest, bounds->seconds_per_byte * Rational(105, 100))
        << Name(kinds.back()) << ": " << busiest.ToString() << ", limit "
        << bounds->seconds_per_byte.ToString();
  }
  EXPECT_EQ(kinds.size(), 3u);

  cluster.jobs["c-a"].lost_paths = Json::array();
  EXPECT_EQ(requests.FollowChanges().size(), 2u);
  EXPECT_EQ(cluster.jobs["c-a"].strategy, "ffa all-reduce");
}

// As on the testbed, where a link drops all both ways: the spine that has no link left is no part of the network.
TEST(ControllerTest, ASpineLostBothWaysIsUsedByNobody) {
  FakeCluster cluster;
  cluster.jobs["c-a"] = {"c-a", "A", {}};
  for (int host = 0; host < 4; ++host)
    for (int device = 0; device < 2; ++device) cluster.jobs["c-a"].ranks.emplace_back(host, device);
  cluster.jobs["c-a"].lost_paths = {
      {{"from", 0}, {"to", 4}, {"channel", 0}, {"ports", {50000, 1000}}},
      {{"from", 4}, {"to", 0}, {"channel", 0}, {"ports", {50000, 1000}}}};
  Requests requests(ControllerOf(cluster));
  EXPECT_EQ(requests.FollowChanges().size(), 2u);
  EXPECT_THAT(cluster.jobs["c-a"].strategy, testing::StartsWith("ffa on what is left ("));
  int pinned = 0;
  for (const Json& flow : cluster.jobs["c-a"].flows)
    if (flow.contains("ports")) {
      ++pinned;
      EXPECT_EQ(flow.at("ports").at(0), 51000);
    }
  EXPECT_GT(pinned, 0);
}

// Whatever is lost, the other way or several links: proven schedules on what is left, or the rings where nothing is.
TEST(ControllerTest, AnyLostLinksLeaveScheduleThatAreProven) {
  const ClusterConfig config = Config();
  Random random(9);
  int made = 0;
  for (int draw = 0; draw < 40; ++draw) {
    SCOPED_TRACE(draw);
    std::vector<int32_t> ranks;
    for (int32_t rank = 0; rank < 8; ++rank)
      if (random.Below(3) > 0) ranks.push_back(rank);
    std::vector<int64_t> bandwidth(config.view.bandwidths().begin(),
                                   config.view.bandwidths().end());
    for (uint64_t lost = random.Below(3); lost > 0; --lost) {
      const int32_t set =
          random.Below(2) == 0 ? config.view.RouteSet(0, 7) : config.view.RouteSet(7, 0);
      for (const LinkId link : config.view.Route(set, static_cast<int32_t>(random.Below(2))))
        if (random.Below(2) == 0) bandwidth[link.index()] = 0;
    }
    const auto left = SynthesizeForLeft(config, bandwidth, ranks, "left");
    if (!left) continue;
    ++made;
    for (size_t i = 0; i < left->strategy.flows.size(); ++i)
      for (const LinkId link :
           config.view.Path(left->strategy.flows[i].from, left->strategy.flows[i].to,
                            std::max(0, left->strategy.routes[i])))
        EXPECT_GT(bandwidth[link.index()], 0);
    for (const Json& each : Json::parse(left->texts.schedules)) {
      const Result<ScheduleFile> file = ScheduleFromJson(each.at("text").get<std::string>());
      ASSERT_TRUE(file) << file.error().message;
      EXPECT_TRUE(Verify(file->topology, file->schedule.collective, file->schedule).verified());
    }
  }
  EXPECT_GT(made, 10);
}

}  // namespace
}  // namespace tutti::controller

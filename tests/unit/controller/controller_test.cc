#include "tutti/controller/controller.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "network_left.h"
#include "strategy_files.h"
#include "tutti/base/random.h"
#include "tutti/bounds/bounds.h"
#include "tutti/controller/requests.h"
#include "tutti/sched/cost.h"
#include "tutti/store/store.h"
#include "tutti/verify/verifier.h"

namespace tutti::controller {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr const char* kNetwork =
    "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(2,2),oversubscription=2)";

Json ConfigJson() {
  Json hosts = Json::array();
  for (int host = 0; host < 4; ++host)
    hosts.push_back({{"name", fmt::format("H{}", host)},
                     {"admin", fmt::format("/h{}", host)},
                     {"nics", {fmt::format("10.1.{}.1", host), fmt::format("10.1.{}.2", host)}}});
  return {{"topology", kNetwork},
          {"hosts", hosts},
          {"routes", {{{"ports", {50000, 1000}}}, {{"ports", {51000, 1000}}}}},
          {"tenants", {{"A", {{"class", 1}}}}}};
}

ClusterConfig Config() {
  Result<ClusterConfig> config = ParseClusterConfig(ConfigJson().dump());
  EXPECT_TRUE(config) << config.error().message;
  return *std::move(config);
}

// A communicator of the imitated cluster: (host, device) by rank; the first one's host leads it.
struct Job {
  std::string label, tenant;
  std::vector<std::pair<int, int>> ranks;
  std::string strategy = "built-in";
  Json flows = nullptr, schedules = nullptr;
  Json lost_paths = Json::array();
  std::vector<Json> gates = {};
  Json followers = nullptr;  // who follows it
  int64_t patience_ns = 0;   // with whom it follows
  std::string holds = {};    // then
  Json trace = Json::array();
};

// Daemons of four hosts that say what they are told to run.
struct FakeCluster {
  std::map<std::string, Job> jobs;
  std::map<int, bool> gone;
  int reconfigured = 0;
  int asked = 0, answers = INT_MAX;  // who asks more than it answers has died

  Json Answer(int host, const Json& request) {
    const std::string command = request.at("command");
    if (command == "status") return {{"address", fmt::format("10.1.{}.1:7600", host)}};
    if (command == "comms") return {{"communicators", Communicators(host)}};
    Job& job = jobs.at(request.at("communicator"));
    if (command == "trace") return {{"traceEvents", job.trace}, {"realtime_offset_us", 9e15}};
    EXPECT_EQ(job.ranks[0].first, host) << "only its root can change it";
    if (command == "gates") {
      job.gates.push_back(request);
      return {{"period_ns", request.at("period_ns")}};
    }
    if (command == "follow") {
      job.patience_ns = request.at("patience_ns");
      job.holds = request.at("holds");
      return {{"key", {17, host}}, {"daemons", {{1, 2}}}};
    }
    if (command == "announce") {
      job.followers = request.at("followers");
      return {{"followers", job.followers.size()}};
    }
    EXPECT_EQ(command, "reconfigure");
    ++reconfigured;
    job.flows = request.at("flows");
    job.schedules = request.at("schedules");
    job.strategy = job.schedules.at(0).at("name");
    return {{"hold_s", 0.001}, {"seconds", 0.01}};
  }

 private:
  Json Communicators(int host) const {
    Json all = Json::array();
    for (const auto& [label, job] : jobs) {
      Json ranks = Json::array();
      for (size_t rank = 0; rank < job.ranks.size(); ++rank)
        if (job.ranks[rank].first == host)
          ranks.push_back({{"rank", rank}, {"device", job.ranks[rank].second}, {"left", false}});
      if (!ranks.empty())
        all.push_back({{"communicator", label},
                       {"tenant", job.tenant},
                       {"state", "active"},
                       {"strategy", job.strategy},
                       {"epoch", 1},
                       {"ranks", job.ranks.size()},
                       {"root", fmt::format("10.1.{}.1:7600", job.ranks[0].first)},
                       {"flows", job.flows},
                       {"lost_paths", job.ranks[0].first == host ? job.lost_paths : Json::array()},
                       {"local_ranks", ranks}});
    }
    return all;
  }
};

class FakeLink final : public DaemonLink {
 public:
  FakeLink(FakeCluster& cluster, int host) : cluster_(cluster), host_(host) {}
  Result<std::string> Ask(const std::string& request) override {
    static std::mutex one_at_a_time;  // changes are asked for by several threads
    const std::lock_guard lock(one_at_a_time);
    if (++cluster_.asked > cluster_.answers) return MakeError(ErrorCode::kPeerFailed, "killed");
    if (cluster_.gone[host_]) return MakeError(ErrorCode::kPeerFailed, "nobody answers");
    return cluster_.Answer(host_, Json::parse(request)).dump();
  }

 private:
  FakeCluster& cluster_;
  int host_;
};

Controller ControllerOf(FakeCluster& cluster) {
  std::vector<std::unique_ptr<DaemonLink>> links;
  for (int host = 0; host < 4; ++host) links.push_back(std::make_unique<FakeLink>(cluster, host));
  return Controller(Config(), std::move(links));
}

// The third way to share the testbed of figure 5b: A has both devices of H0 and H2, B and C one each of H1 and H3.
FakeCluster ThirdSetUp() {
  FakeCluster cluster;
  cluster.jobs["c-a"] = {"c-a", "A", {{0, 0}, {0, 1}, {2, 0}, {2, 1}}};
  cluster.jobs["c-b"] = {"c-b", "B", {{1, 0}, {3, 0}}};
  cluster.jobs["c-c"] = {"c-c", "C", {{1, 1}, {3, 1}}};
  return cluster;
}

TEST(ControllerTest, FairFlowsOfTheThirdSetUpByHand) {
  FakeCluster cluster = ThirdSetUp();
  Controller controller = ControllerOf(cluster);
  const Inventory inventory = controller.Look();
  ASSERT_EQ(inventory.communicators.size(), 3u);
  EXPECT_EQ(inventory.communicators[0].ranks, (std::vector<int32_t>{0, 1, 4, 5}));
  EXPECT_EQ(inventory.communicators[1].ranks, (std::vector<int32_t>{2, 6}));
  const Result<Decision> decision = controller.Decide(inventory, {});
  ASSERT_TRUE(decision) << decision.error().message;
  // Two routes times the most ranks in a host: 4 rings of A, 2 of B and C; each crosses the racks once each way.
  ASSERT_EQ(decision->changes.size(), 3u);
  EXPECT_EQ(decision->changes[0].strategy.rings.size(), 4u);
  EXPECT_EQ(decision->changes[1].strategy.rings.size(), 2u);
  EXPECT_EQ(decision->changes[2].strategy.rings.size(), 2u);
  // Every spine carries half of what each tenant sends across, each way.
  for (const StrategyChange& change : decision->changes) {
    std::map<std::pair<bool, int32_t>, int> flows;  // by direction and route
    for (size_t i = 0; i < change.strategy.flows.size(); ++i)
      ++flows[{change.strategy.flows[i].from < 4, change.strategy.routes[i]}];
    EXPECT_EQ(flows.size(), 4u) << change.label;
    for (const auto& [key, count] : flows)
      EXPECT_EQ(count, static_cast<int>(change.strategy.rings.size()) / 2) << change.label;
  }
  // Links between leaves and spines are shared by three tenants of one weight each.
  ASSERT_EQ(decision->certificate.size(), 3u);
  EXPECT_TRUE(decision->certificate_faults.empty());
  for (const TenantCertificate& tenant : decision->certificate) {
    EXPECT_EQ(tenant.share, Rational(100'000'000 / 8, 3)) << tenant.tenant;
    EXPECT_THAT(tenant.link, HasSubstr("leaf"));
  }
  // A's flows ask for 100 / 2 of each NIC, B's and C's for as much: 200 + 200 Mbit/s over two links of 100.
  EXPECT_EQ(decision->largest_excess, 100'000'000 / 8);
}

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

TEST(ControllerTest, WhatIsInForceIsReadBackAndNotDoneAgain) {
  FakeCluster cluster = ThirdSetUp();
  {
    Controller controller = ControllerOf(cluster);
    const Result<Decision> decision = controller.Decide(controller.Look(), {});
    ASSERT_TRUE(decision);
    const std::vector<Applied> applied = controller.Apply(*decision);
    ASSERT_EQ(applied.size(), 3u);
    for (const Applied& one : applied) EXPECT_EQ(one.error, "");
    EXPECT_EQ(cluster.reconfigured, 3);
  }
  // Another controller, that knows nothing: the first was killed.
  Controller controller = ControllerOf(cluster);
  const Inventory inventory = controller.Look();
  EXPECT_EQ(inventory.communicators[0].flows.size(), 8u);
  const Result<Decision> again = controller.Decide(inventory, {});
  ASSERT_TRUE(again);
  for (const StrategyChange& change : again->changes) EXPECT_FALSE(change.is_new) << change.label;
  EXPECT_TRUE(controller.Apply(*again).empty());
  // So are schedules for small sizes beside the same rings.
  const Result<Decision> by_size = controller.Decide(controller.Look(), {.by_size = true});
  ASSERT_TRUE(by_size);
  for (const StrategyChange& change : by_size->changes) EXPECT_TRUE(change.is_new) << change.label;
  EXPECT_EQ(cluster.reconfigured, 3);
  // Another policy is something new, and one by ECMP pins nothing.
  const Result<Decision> ecmp = controller.Decide(inventory, {.name = "locality-ring"});
  ASSERT_TRUE(ecmp);
  EXPECT_EQ(controller.Apply(*ecmp).size(), 3u);
  for (const auto& [label, job] : cluster.jobs)
    for (const Json& flow : job.flows) EXPECT_FALSE(flow.contains("ports")) << label;
}

// A controller that is killed between any two of its messages: the next one leaves what runs, does the rest, and ends as
// good as an undisturbed one.
TEST(ControllerTest, AnotherGoesOnWhereverOneDies) {
  FakeCluster undisturbed = ThirdSetUp();
  int64_t excess = 0;
  {
    Controller controller = ControllerOf(undisturbed);
    const Result<Decision> decision = controller.Decide(controller.Look(), {});
    ASSERT_TRUE(decision);
    controller.Apply(*decision);
    excess = decision->largest_excess;
  }
  const int messages = undisturbed.asked;
  ASSERT_GT(messages, 8);
  for (int last = 0; last <= messages; ++last) {
    FakeCluster cluster = ThirdSetUp();
    cluster.answers = last;
    {
      Controller dies = ControllerOf(cluster);
      if (const Result<Decision> decision = dies.Decide(dies.Look(), {})) dies.Apply(*decision);
    }
    cluster.answers = INT_MAX;
    const int before = cluster.reconfigured;
    Controller next = ControllerOf(cluster);
    const Result<Decision> decision = next.Decide(next.Look(), {});
    ASSERT_TRUE(decision);
    for (const Applied& applied : next.Apply(*decision)) EXPECT_EQ(applied.error, "");
    EXPECT_EQ(decision->largest_excess, excess) << "died after message " << last;
    for (const auto& [label, job] : cluster.jobs)
      EXPECT_EQ(job.strategy, "ffa all-reduce") << label;
    EXPECT_EQ(cluster.reconfigured, 3) << "nothing twice; " << before << " had been done";
    EXPECT_TRUE(next.Apply(*next.Decide(next.Look(), {})).empty());
  }
}

// Two controllers of different minds: what is in force is always whole, one's or the other's.
TEST(ControllerTest, TwoControllersOverwriteEachOtherWhole) {
  FakeCluster cluster = ThirdSetUp();
  Controller fair = ControllerOf(cluster), by_hash = ControllerOf(cluster);
  const Inventory seen_by_both = fair.Look();
  const Result<Decision> pinned = fair.Decide(seen_by_both, {.name = "ffa"});
  const Result<Decision> free = by_hash.Decide(seen_by_both, {.name = "locality-ring"});
  ASSERT_TRUE(pinned && free);
  EXPECT_EQ(fair.Apply(*pinned).size(), 3u);
  EXPECT_EQ(by_hash.Apply(*free).size(), 3u);  // decided before, and yet whole
  for (const auto& [label, job] : cluster.jobs) {
    EXPECT_EQ(job.strategy, "locality-ring all-reduce") << label;
    for (const Json& flow : job.flows) EXPECT_FALSE(flow.contains("ports")) << label;
  }
  // The first sees that its own is no longer in force.
  const Result<Decision> again = fair.Decide(fair.Look(), {.name = "ffa"});
  ASSERT_TRUE(again);
  for (const StrategyChange& change : again->changes) EXPECT_TRUE(change.is_new) << change.label;
}

// Ranks 0 and 1 in one rack, 2 in the other: the route between racks is none of the hop inside.
TEST(ControllerTest, InstallsARouteThatSomeHopsDoNotHave) {
  FakeCluster cluster;
  cluster.jobs["c-b"] = {"c-b", "B", {{0, 0}, {1, 0}, {2, 0}}};
  Controller controller = ControllerOf(cluster);
  const Result<Applied> applied =
      controller.Install(controller.Look(), "c-b", {.rings = {{0, 1, 2}}, .route = 1});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(applied->error, "");
  EXPECT_EQ(cluster.jobs["c-b"].flows.size(), 3u);
}

// B's two rings by locality: the first flow out goes where it is told, the others where the network sends them.
TEST(ControllerTest, InstallsRoutesOfSingleFlows) {
  FakeCluster cluster = ThirdSetUp();
  Requests requests(ControllerOf(cluster));
  const Json answer = Json::parse(
      requests.Answer(Json{{"command", "install"},
                           {"communicator", "c-b"},
                           {"routes", {{{"from", 0}, {"to", 1}, {"channel", 1}, {"route", 1}}}}}
                          .dump()));
  ASSERT_FALSE(answer.contains("error")) << answer;
  int pinned = 0;
  for (const Json& flow : cluster.jobs["c-b"].flows)
    if (flow.contains("ports")) {
      ++pinned;
      EXPECT_EQ(flow.at("from"), 0);
      EXPECT_EQ(flow.at("channel"), 1);
      EXPECT_EQ(flow.at("ports").at(0), 51000);
    }
  EXPECT_EQ(pinned, 1);
}

Status Throw(const PolicyInput&, PolicyOutput&) { throw std::runtime_error("no idea"); }
Status ThrowNothing(const PolicyInput&, PolicyOutput&) { throw 7; }
std::atomic<bool> may_answer = false;
Status AnswerLate(const PolicyInput&, PolicyOutput&) {
  while (!may_answer) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return {};
}

// A provider's own policies: one that throws or never answers says so, changes nothing, and the others go on.
TEST(ControllerTest, PoliciesThatThrowOrNeverAnswer) {
  FakeCluster cluster = ThirdSetUp();
  static const std::vector<Policy> kOwn = {
      {"throws", "", RingOrder::kLocality, Throw},
      {"throws-nothing", "", RingOrder::kLocality, ThrowNothing},
      {"never", "", RingOrder::kLocality, AnswerLate},
  };
  std::vector<std::unique_ptr<DaemonLink>> links;
  for (int host = 0; host < 4; ++host) links.push_back(std::make_unique<FakeLink>(cluster, host));
  Requests requests(
      Controller(Config(), std::move(links), {.more_policies = kOwn, .patience_s = 0.05}));
  const auto apply = [&requests](const char* policy) {
    const Json answer =
        Json::parse(requests.Answer(Json{{"command", "apply"}, {"policy", policy}}.dump()));
    return answer.value("error", "");
  };
  // On a busy machine one that does answer may take longer than the patience: it is asked again.
  const auto answer_of = [&apply](const char* policy) {
    std::string answer;
    do answer = apply(policy);
    while (answer.find("has not answered within") != std::string::npos ||
           answer.find("still works on an earlier question") != std::string::npos);
    return answer;
  };
  EXPECT_EQ(answer_of("throws"), "policy throws failed: no idea");
  EXPECT_EQ(answer_of("throws-nothing"), "policy throws-nothing failed and does not say why");
  EXPECT_EQ(apply("never"), "policy never has not answered within 0.05 s");
  EXPECT_EQ(apply("never"), "policy never still works on an earlier question");
  EXPECT_EQ(cluster.reconfigured, 0);
  EXPECT_EQ(answer_of("locality-ring"), "");
  EXPECT_EQ(cluster.reconfigured, 3);
  // Once it has ended it is asked again.
  may_answer = true;
  while (apply("never") == "policy never still works on an earlier question")
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Who does not answer delays nobody else: a daemon that waits until all others were asked.
TEST(ControllerTest, AllHostsAreAskedAtOnce) {
  struct Meets final : DaemonLink {
    explicit Meets(std::atomic<int>& there) : there_(there) {}
    Result<std::string> Ask(const std::string& request) override {
      if (request.find("status") != std::string::npos) {
        ++there_;
        for (int look = 0; look < 30'000 && there_ < 4; ++look)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (there_ < 4) return MakeError(ErrorCode::kPeerFailed, "nobody else was asked");
        return std::string(R"({"address": "10.0.0.1:1"})");
      }
      return std::string(R"({"communicators": []})");
    }
    std::atomic<int>& there_;
  };
  std::atomic<int> there = 0;
  std::vector<std::unique_ptr<DaemonLink>> links;
  for (int host = 0; host < 4; ++host) links.push_back(std::make_unique<Meets>(there));
  const Inventory inventory = Controller(Config(), std::move(links)).Look();
  ASSERT_EQ(inventory.hosts.size(), 4u);
  for (size_t host = 0; host < 4; ++host) {
    EXPECT_EQ(inventory.hosts[host].name, fmt::format("H{}", host));
    EXPECT_EQ(inventory.hosts[host].error, "");
  }
}

// Others fill the link to spine 0: whoever can goes by spine 1.
TEST(ControllerTest, FlowsAreFittedBesideTheTrafficOfOthers) {
  FakeCluster cluster;
  cluster.jobs["c-b"] = {"c-b", "B", {{1, 0}, {3, 0}}};
  Requests requests(ControllerOf(cluster));
  const auto routes = [&](const Json& background) {
    const Json answer = Json::parse(requests.Answer(
        Json{{"command", "apply"}, {"channels", 1}, {"dry_run", true}, {"background", background}}
            .dump()));
    return answer.at("strategies").at(0).at("routes");
  };
  EXPECT_EQ(routes(Json::object()), Json({0, 0}));
  EXPECT_EQ(routes({{"leaf0 -> spine0", 12'500'000}}), Json({1, 0}));
  EXPECT_EQ(routes({{"leaf0 -> spine0", 12'500'000}, {"leaf1 -> spine0", 1}}), Json({1, 1}));
}

TEST(ControllerTest, HigherClassesHaveReservedRoutesForThemselves) {
  FakeCluster cluster = ThirdSetUp();
  Controller controller = ControllerOf(cluster);
  const PolicyChoice pfa{.name = "pfa", .reserved_routes = 1, .reserved_from = 1};
  const Result<Decision> decision = controller.Decide(controller.Look(), pfa);
  ASSERT_TRUE(decision) << decision.error().message;
  for (const StrategyChange& change : decision->changes)
    for (const int32_t route : change.strategy.routes) {
      if (change.tenant != "A") {
        EXPECT_EQ(route, 1) << change.tenant;
      }
    }
  const auto reasons = controller.Explain(*decision, "c-b", pfa);
  ASSERT_TRUE(reasons);
  ASSERT_EQ(reasons->size(), 4u);
  for (const FlowReason& reason : *reasons) {
    ASSERT_EQ(reason.routes.size(), 2u);
    EXPECT_TRUE(reason.routes[0].reserved);
    EXPECT_FALSE(reason.routes[0].chosen);
    EXPECT_TRUE(reason.routes[1].chosen);
    EXPECT_THAT(reason.routes[1].fullest, HasSubstr("spine1"));
  }
  EXPECT_FALSE(controller.Explain(*decision, "c-x", pfa));
}

TEST(ControllerTest, StrategiesAreSchedulesAndFlowsOfTheRanks) {
  const ClusterConfig config = Config();
  // Rank 0 in H2, 1 in H0, 2 in H1: one ring 0 -> 1 -> 2, and the same again.
  JobStrategy strategy{.rings = {{4, 0, 2}, {4, 0, 2}}, .flows = {}, .routes = {}};
  Random unused(0);
  strategy.flows = FlowsOf(config.view, strategy.rings, NicChoice::kOwn, unused);
  strategy.routes = {0, kByEcmp, 1, 1, 0, kByEcmp};
  const auto texts =
      MakeStrategyTexts(config, "ffa", std::vector<int32_t>{4, 0, 2}, strategy, false);
  ASSERT_TRUE(texts) << texts.error().message;
  const Json flows = Json::parse(texts->flows);
  ASSERT_EQ(flows.size(), 6u);
  EXPECT_EQ(flows[0], Json({{"from", 0},
                            {"to", 1},
                            {"channel", 0},
                            {"source", "10.1.2.1"},
                            {"target", "10.1.0.1"},
                            {"ports", {50000, 1000}},
                            {"others", Json::array({Json::array({51000, 1000})})}}));
  EXPECT_FALSE(flows[1].contains("ports"));
  EXPECT_EQ(flows[3]["channel"], 1);
  EXPECT_EQ(flows[3]["ports"], Json({51000, 1000}));
  const Json schedules = Json::parse(texts->schedules);
  ASSERT_EQ(schedules.size(), 3u);
  for (const Json& file : schedules) {
    const Result<ScheduleFile> read = ScheduleFromJson(file["text"]);
    ASSERT_TRUE(read) << file["name"] << ": " << read.error().message;
    EXPECT_EQ(read->topology.num_ranks(), 3);
    EXPECT_EQ(read->topology.num_links(), 6);
  }
}

// Two ranks each of H0 and H2, a ring over each NIC: what is predicted for 8 bytes and for 64 MiB, by hand.
TEST(ControllerTest, SchedulesOfFewStepsStandBesideTheRings) {
  const ClusterConfig config = Config();
  JobStrategy strategy{.rings = {{0, 1, 4, 5}, {1, 0, 5, 4}}, .flows = {}, .routes = {}};
  Random unused(0);
  strategy.flows = FlowsOf(config.view, strategy.rings, NicChoice::kOwn, unused);
  strategy.routes = {0, 0, 1, 1};
  const auto texts =
      MakeStrategyTexts(config, "ffa by size", std::vector<int32_t>{0, 1, 4, 5}, strategy, true);
  ASSERT_TRUE(texts) << texts.error().message;
  const Json schedules = Json::parse(texts->schedules);
  ASSERT_EQ(schedules.size(), 6u);
  EXPECT_EQ(schedules[0]["name"], "ffa by size all-reduce");
  EXPECT_EQ(schedules[3]["name"], "few steps all-reduce");
  const Result<ScheduleFile> ring = ScheduleFromJson(schedules[0]["text"]);
  const Result<ScheduleFile> few = ScheduleFromJson(schedules[3]["text"]);
  ASSERT_TRUE(ring && few);
  // Alone on its NIC and route an edge of the rings has all 100 Mbit/s, beside one in memory.
  EXPECT_EQ(ring->topology.max_in_bandwidth(), 100'000'000'000 + 12'500'000);
  EXPECT_EQ(ring->topology.min_bandwidth(), 12'500'000);
  // Each NIC has two connections each way, each link to a spine two of the four between the racks.
  EXPECT_EQ(few->topology.min_bandwidth(), 6'250'000);
  EXPECT_EQ(few->topology.num_links(), 12);
  const auto seconds = [](const ScheduleFile& file, int64_t bytes) {
    return PredictedSeconds(file.topology, file.schedule, bytes);
  };
  EXPECT_LT(seconds(*few, 8), seconds(*ring, 8));
  EXPECT_GT(seconds(*few, 64 << 20), seconds(*ring, 64 << 20));
}

TEST(ControllerTest, CommunicatorsThatAreNotCompleteAreLeftOutAndNamed) {
  FakeCluster cluster = ThirdSetUp();
  cluster.gone[3] = true;
  Controller controller = ControllerOf(cluster);
  const Inventory inventory = controller.Look();
  EXPECT_EQ(inventory.hosts[3].error, "nobody answers");
  const Result<Decision> decision = controller.Decide(inventory, {});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->changes.size(), 1u);
  ASSERT_EQ(decision->left_out.size(), 2u);
  EXPECT_THAT(decision->left_out[0], HasSubstr("c-b: not all its ranks have joined"));
}

// Collectives of 4 ms every 20 ms: others may send for 16 ms less twice the guard.
TEST(ControllerTest, WindowsFollowTheTraceOfThePreferred) {
  FakeCluster cluster = ThirdSetUp();
  const auto trace = [](double period_us, double jitter_us) {
    Json events = Json::array();
    Random random(7);
    for (int i = 0; i < 40; ++i)
      events.push_back(
          {{"name", "all-reduce"},
           {"ts", 1e6 + i * period_us + static_cast<double>(random.Below(100)) / 100 * jitter_us},
           {"dur", 4000},
           {"args", {{"sequence", i}}}});
    return events;
  };
  cluster.jobs["c-b"].trace = trace(20'000, 0);
  Controller controller = ControllerOf(cluster);
  const Inventory inventory = controller.Look();
  const auto windows = controller.SetWindows(inventory, "c-b", {"c-c"}, 100'000, 1'000'000);
  ASSERT_TRUE(windows) << windows.error().message;
  EXPECT_EQ(windows->period_ns, 20'000'000);
  EXPECT_EQ(windows->length_ns, 4'000'000);
  EXPECT_EQ(windows->guard_ns, 100'000);  // it keeps its windows: nothing drifts
  // Silent, then windows beside those of the preferred one.
  const std::vector<Json>& others = cluster.jobs["c-c"].gates;
  const std::vector<Json>& own = cluster.jobs["c-b"].gates;
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[0]["length_ns"], 1);
  EXPECT_EQ(others[1]["length_ns"], 15'800'000);
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0]["period_ns"], 0);
  EXPECT_EQ(own[1]["length_ns"], 4'200'000);
  EXPECT_EQ((own[1]["phase_ns"].get<int64_t>() + 4'200'000) % 20'000'000, others[1]["phase_ns"]);
  EXPECT_TRUE(cluster.jobs["c-a"].gates.empty());
  ASSERT_TRUE(controller.ClearWindows(inventory, {"c-c"}));
  EXPECT_EQ(others[2]["period_ns"], 0);
  // What is shut holds launches only; while the trace is taken every byte.
  ASSERT_TRUE(
      controller.SetWindows(inventory, "c-b", {"c-c"}, 100'000, 1'000'000, Held::kLaunches));
  EXPECT_EQ(others[3]["holds"], "sends");
  EXPECT_EQ(others[4]["holds"], "launches");
  EXPECT_EQ(own.back()["holds"], "launches");
  // Without a period all may always send.
  cluster.jobs["c-b"].trace = trace(20'000, 9'000);
  EXPECT_FALSE(controller.SetWindows(inventory, "c-b", {"c-c"}, 100'000, 1'000'000));
  EXPECT_EQ(others.back()["period_ns"], 0);
  EXPECT_FALSE(controller.SetWindows(inventory, "c-b", {"c-b"}, 0, 1'000'000));
}

TEST(ControllerTest, DaemonsOfThePreferredAreToldWhoFollows) {
  FakeCluster cluster = ThirdSetUp();
  Controller controller = ControllerOf(cluster);
  const Inventory inventory = controller.Look();
  ASSERT_TRUE(controller.Follow(inventory, "c-b", {"c-c", "c-a"}, 5'000));
  EXPECT_EQ(cluster.jobs["c-b"].gates.back()["period_ns"], 0);
  EXPECT_EQ(cluster.jobs["c-a"].patience_ns, 5'000);
  EXPECT_EQ(cluster.jobs["c-c"].patience_ns, 5'000);
  EXPECT_EQ(cluster.jobs["c-c"].holds, "sends");
  const Json& followers = cluster.jobs["c-b"].followers;
  ASSERT_EQ(followers.size(), 2u);
  EXPECT_EQ(followers[0],
            Json({{"key", {17, cluster.jobs["c-c"].ranks[0].first}}, {"daemons", {{1, 2}}}}));
  EXPECT_TRUE(cluster.jobs["c-a"].followers.is_null());
  const Status same = controller.Follow(inventory, "c-b", {"c-b"}, 5'000);
  ASSERT_FALSE(same);
  EXPECT_THAT(same.error().message, HasSubstr("is to be preferred and to keep silent"));
  EXPECT_FALSE(controller.Follow(inventory, "c-x", {"c-b"}, 5'000));
  EXPECT_FALSE(controller.Follow(inventory, "c-b", {"c-x"}, 5'000));
  // As operators ask.
  Requests requests(std::move(controller));
  const Json answer = Json::parse(requests.Answer(
      R"({"command": "windows", "victims": ["c-c"], "preferred": "c-b", "follow": true, "holds": "launches"})"));
  EXPECT_EQ(cluster.jobs["c-c"].holds, "launches");
  EXPECT_EQ(answer, Json({{"period_ns", 0}, {"follows", "c-b"}, {"patience_ns", 1'000'000'000}}));
}

TEST(ClusterConfigTest, FaultsAreNamed) {
  const auto fault = [](const std::string& pointer, const Json& value) {
    Json json = ConfigJson();
    json[Json::json_pointer(pointer)] = value;
    const Result<ClusterConfig> config = ParseClusterConfig(json.dump());
    return config ? "" : config.error().message;
  };
  EXPECT_THAT(fault("/topology", "torus(4,"), HasSubstr("topology: "));
  EXPECT_THAT(fault("/hosts", Json::array()), HasSubstr("hosts: 0 are listed, the network has 4"));
  EXPECT_THAT(fault("/hosts/1/name", "H0"), HasSubstr("hosts[1].name: 'H0' is there twice"));
  EXPECT_THAT(fault("/hosts/2/nics", {"10.1.2.1"}),
              HasSubstr("hosts[2].nics: 1 are listed, the host has 2 devices"));
  EXPECT_THAT(fault("/hosts/2/nic", "x"), HasSubstr("hosts[2].nic: is no field"));
  EXPECT_THAT(fault("/routes/1/ports", {60000, 6000}), HasSubstr("routes[1].ports: wanted"));
  EXPECT_THAT(fault("/routes", Json::array({{{"ports", {50000, 1000}}}})),
              HasSubstr("routes: 1 are listed, the network has up to 2"));
  EXPECT_THAT(fault("/tenants/A/class", -1), HasSubstr("tenants.A.class: got -1"));
  EXPECT_THAT(fault("/polcy", "ffa"), HasSubstr("polcy: is no field"));
  EXPECT_THAT(ParseClusterConfig("[1").error().message, HasSubstr("is no JSON object"));
}

TEST(RequestsTest, HostileRequestsAreAnsweredAndChangeNothing) {
  FakeCluster cluster = ThirdSetUp();
  Requests requests(ControllerOf(cluster));
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "no JSON object"},
      {"[]", "no JSON object"},
      {"{", "no JSON object"},
      {R"({"command": 7})", "command ''"},
      {R"({"command": "reboot"})", "command 'reboot'"},
      {R"({"command": "apply", "policy": "fairest"})", "unknown policy 'fairest'"},
      {R"({"command": "apply", "policy": 3})", "policy: got 3"},
      {R"({"command": "apply", "channels": -1})", "channels: got -1"},
      {R"({"command": "apply", "channels": 1e300})", "channels: got 1e+300"},
      {R"({"command": "apply", "reserved_from": 0})", "reserved_from: got 0"},
      {R"({"command": "apply", "dry_run": "yes"})", "dry_run: wanted"},
      {R"({"command": "apply", "extra": 1})", "extra: is no field"},
      {R"({"command": "apply", "background": []})", "background: is no object"},
      {R"({"command": "apply", "background": {"leaf0 -> leaf1": 1}})",
       "background.leaf0 -> leaf1: is no link"},
      {R"({"command": "apply", "background": {"leaf0 -> spine1": -1}})",
       "background.leaf0 -> spine1: got -1"},
      {R"({"command": "explain"})", "communicator: wanted"},
      {R"({"command": "explain", "communicator": "c-x"})", "no communicator 'c-x'"},
      {R"({"command": "install", "communicator": "c-b", "rings": []})", "neither rings nor routes"},
      {R"({"command": "install", "communicator": "c-b", "routes": {}})", "routes: is no list"},
      {R"({"command": "install", "communicator": "c-b", "routes": [7]})", "routes[0].is no object"},
      {R"({"command": "install", "communicator": "c-b", "routes": [{"from": 0, "to": 1}]})",
       "routes[0].needs from, to and route"},
      {R"({"command": "install", "communicator": "c-b", "routes": [{"from": 0, "to": 1, "route": 2}]})",
       "routes[0]: route 2, there are 2 from rank 0 to rank 1"},
      {R"({"command": "install", "communicator": "c-b", "routes": [{"from": 0, "to": 7, "route": 0}]})",
       "routes[0]: no flow of its rings goes from rank 0 to rank 7 on channel 0"},
      {R"({"command": "install", "communicator": "c-b", "routes": [{"from": 0, "to": 1, "route": 0, "by": 1}]})",
       "routes[0].by: is no field"},
      {R"({"command": "install", "communicator": "c-b", "rings": [[0, 2]]})",
       "rank 2, wanted 0 to 1"},
      {R"({"command": "install", "communicator": "c-b", "rings": [[0, 0]]})",
       "each of the 2 ranks once"},
      {R"({"command": "install", "communicator": "c-b", "rings": [[0]]})",
       "each of the 2 ranks once"},
      {R"({"command": "install", "communicator": "c-b", "rings": [[0, 1]], "route": 2})",
       "route 2"},
      {R"({"command": "install", "communicator": "c-b", "rings": "all"})", "rings: got"},
      {R"({"command": "windows", "victims": []})", "victims: is empty"},
      {R"({"command": "windows", "victims": ["c-x"], "preferred": "c-b"})",
       "no communicator 'c-x'"},
      {R"({"command": "windows", "victims": ["c-c"], "preferred": "c-b"})", "wanted at least 3"},
      {R"({"command": "windows", "victims": ["c-c"], "preferred": "c-b", "holds": "bytes"})",
       "holds: got 'bytes', wanted sends or launches"},
      {R"({"command": "windows", "victims": ["c-c"], "preferred": "c-b", "follow": 1})",
       "follow: got"},
      {R"({"command": "windows", "victims": ["c-c"], "preferred": "c-b", "patience_ns": 0})",
       "patience_ns"},
  };
  for (const auto& [request, error] : table) {
    const Json answer = Json::parse(requests.Answer(request));
    ASSERT_TRUE(answer.contains("error")) << request << " -> " << answer;
    EXPECT_THAT(answer["error"].get<std::string>(), HasSubstr(error)) << request;
  }
  EXPECT_EQ(cluster.reconfigured, 0);
  // A daemon of another version.
  cluster.jobs["c-b"].flows = Json::array({{{"from", "x"}}});
  EXPECT_NE(requests.Answer(R"({"command": "show"})"), "");
}

TEST(RequestsTest, FollowsWhoComesAndGoes) {
  FakeCluster cluster = ThirdSetUp();
  cluster.jobs.erase("c-c");
  Requests requests(ControllerOf(cluster));
  EXPECT_EQ(requests.FollowChanges().size(), 2u);
  EXPECT_EQ(requests.FollowChanges().size(), 0u);
  EXPECT_EQ(cluster.reconfigured, 2);
  cluster.jobs["c-c"] = {"c-c", "C", {{1, 1}, {3, 1}}};
  const std::vector<std::string> lines = requests.FollowChanges();
  EXPECT_THAT(lines, testing::Contains(HasSubstr("c-c: ffa in force")));
  EXPECT_EQ(requests.FollowChanges().size(), 0u);
  const Json applied = Json::parse(
      requests.Answer(R"({"command": "apply", "policy": "locality-ring", "dry_run": true})"));
  EXPECT_EQ(applied["strategies"].size(), 3u);
  EXPECT_TRUE(applied["applied"].empty());
  EXPECT_EQ(Json::parse(requests.Answer(R"({"command": "show"})"))["policy"], "ffa");
}

}  // namespace
}  // namespace tutti::controller

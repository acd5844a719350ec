#include "tutti/controller/controller.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_cluster.h"
#include "strategy_files.h"
#include "tutti/base/random.h"
#include "tutti/controller/requests.h"
#include "tutti/sched/cost.h"
#include "tutti/store/store.h"

namespace tutti::controller {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace tutti::controller

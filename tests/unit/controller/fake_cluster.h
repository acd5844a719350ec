// A cluster of four hosts whose daemons are imitated: they run what they are told to, and say so.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <climits>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tutti/controller/controller.h"

namespace tutti::controller {

using Json = nlohmann::json;

inline constexpr const char* kNetwork =
    "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(2,2),oversubscription=2)";

inline Json ConfigJson() {
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

inline ClusterConfig Config() {
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

inline Controller ControllerOf(FakeCluster& cluster) {
  std::vector<std::unique_ptr<DaemonLink>> links;
  for (int host = 0; host < 4; ++host) links.push_back(std::make_unique<FakeLink>(cluster, host));
  return Controller(Config(), std::move(links));
}

// The third way to share the testbed of figure 5b: A has both devices of H0 and H2, B and C one each of H1 and H3.
inline FakeCluster ThirdSetUp() {
  FakeCluster cluster;
  cluster.jobs["c-a"] = {"c-a", "A", {{0, 0}, {0, 1}, {2, 0}, {2, 1}}};
  cluster.jobs["c-b"] = {"c-b", "B", {{1, 0}, {3, 0}}};
  cluster.jobs["c-c"] = {"c-c", "C", {{1, 1}, {3, 1}}};
  return cluster;
}

}  // namespace tutti::controller

// What runs on a cluster, from the answers of its daemons.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "ask.h"
#include "tutti/controller/controller.h"

namespace tutti::controller {
namespace {

using Json = nlohmann::json;

// Pinned by its ports; otherwise by the network.
int32_t RouteOf(const ClusterConfig& config, const Json& flow) {
  if (!flow.contains("ports")) return kByEcmp;
  for (size_t route = 0; route < config.routes.size(); ++route)
    if (flow["ports"].at(0) == config.routes[route].first) return static_cast<int32_t>(route);
  return kByEcmp;
}

// May throw what nlohmann::json throws: a daemon of another version.
void AddCommunicator(const ClusterConfig& config, int32_t host, const Json& of_daemon,
                     const std::map<std::string, int32_t>& host_of_address,
                     std::map<std::string, CommunicatorState>& all) {
  const std::string label = of_daemon.at("communicator");
  CommunicatorState& state = all[label];
  if (state.label.empty()) {
    state.label = label;
    state.tenant = of_daemon.at("tenant");
    state.state = of_daemon.at("state");
    state.strategy = of_daemon.at("strategy");
    state.epoch = of_daemon.at("epoch");
    state.ranks.assign(of_daemon.at("ranks").get<size_t>(), -1);
    const auto root = host_of_address.find(of_daemon.at("root"));
    if (root != host_of_address.end()) state.root_host = root->second;
    if (of_daemon.at("flows").is_array())
      for (const Json& flow : of_daemon["flows"])
        state.flows.push_back(
            {flow.at("from"), flow.at("to"), flow.value("channel", 0), RouteOf(config, flow)});
  }
  // Set up on some hosts only.
  if (of_daemon.at("state") == "joining") state.state = "joining";
  for (const Json& rank : of_daemon.at("local_ranks")) {
    const auto number = rank.at("rank").get<size_t>();
    if (number < state.ranks.size() && !rank.at("left").get<bool>())
      state.ranks[number] = config.RankOf(host, rank.at("device"));
  }
}

}  // namespace

bool CommunicatorState::is_complete() const {
  return root_host >= 0 && state != "failed" && state != "joining" &&
         std::none_of(ranks.begin(), ranks.end(), [](int32_t rank) { return rank < 0; });
}

Inventory Controller::Look() {
  Inventory inventory;
  std::map<std::string, int32_t> host_of_address;
  std::vector<Json> communicators(config_.hosts.size());
  for (size_t host = 0; host < config_.hosts.size(); ++host) {
    HostState& state = inventory.hosts.emplace_back();
    state.name = config_.hosts[host].name;
    const Result<Json> status = AskJson(*links_[host], {{"command", "status"}});
    const Result<Json> comms = status ? AskJson(*links_[host], {{"command", "comms"}}) : status;
    if (!comms) {
      state.error = comms.error().message;
      continue;
    }
    state.address = status->value("address", "");
    host_of_address[state.address] = static_cast<int32_t>(host);
    communicators[host] = comms->value("communicators", Json::array());
  }
  std::map<std::string, CommunicatorState> all;
  for (size_t host = 0; host < communicators.size(); ++host)
    for (const Json& communicator : communicators[host]) {
      try {
        AddCommunicator(config_, static_cast<int32_t>(host), communicator, host_of_address, all);
      } catch (const Json::exception& fault) {
        inventory.hosts[host].error = fmt::format("its report is not understood: {}", fault.what());
      }
    }
  for (auto& [label, state] : all) inventory.communicators.push_back(std::move(state));
  return inventory;
}

}  // namespace tutti::controller

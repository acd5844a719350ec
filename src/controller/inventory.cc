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
  for (const Json& flow : of_daemon.value("lost_paths", Json::array()))
    state.lost.push_back(
        {flow.at("from"), flow.at("to"), flow.value("channel", 0), RouteOf(config, flow)});
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

std::vector<bool> LostLinks(const ClusterConfig& config, const Inventory& inventory) {
  std::vector<bool> lost(static_cast<size_t>(config.view.num_links()));
  for (const CommunicatorState& communicator : inventory.communicators)
    for (const FlowInForce& flow : communicator.lost) {
      const auto ranks = static_cast<int32_t>(communicator.ranks.size());
      if (flow.route == kByEcmp || flow.from < 0 || flow.from >= ranks || flow.to < 0 ||
          flow.to >= ranks)
        continue;
      const int32_t from = communicator.ranks[static_cast<size_t>(flow.from)];
      const int32_t to = communicator.ranks[static_cast<size_t>(flow.to)];
      if (from < 0 || to < 0) continue;
      const int32_t set = config.view.RouteSet(from, to);
      if (flow.route >= config.view.NumRoutes(set)) continue;
      for (const LinkId link : config.view.Route(set, flow.route)) lost[link.index()] = true;
    }
  return lost;
}

Inventory Controller::Look() {
  Inventory inventory;
  std::map<std::string, int32_t> host_of_address;
  std::vector<Json> communicators(config_.hosts.size());
  inventory.hosts.resize(config_.hosts.size());
  AskAtOnce(config_.hosts.size(), options_.at_once, [&](size_t host) {
    HostState& state = inventory.hosts[host];
    state.name = config_.hosts[host].name;
    const Result<Json> status = AskJson(*links_[host], {{"command", "status"}});
    const Result<Json> comms = status ? AskJson(*links_[host], {{"command", "comms"}}) : status;
    if (!comms) {
      state.error = comms.error().message;
      return;
    }
    try {
      state.address = status->value("address", "");
      communicators[host] = comms->value("communicators", Json::array());
    } catch (const Json::exception& fault) {
      state.error = fmt::format("its report is not understood: {}", fault.what());
    }
  });
  for (size_t host = 0; host < inventory.hosts.size(); ++host)
    if (!inventory.hosts[host].address.empty())
      host_of_address[inventory.hosts[host].address] = static_cast<int32_t>(host);
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

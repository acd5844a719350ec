#include "strategy_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tutti/base/units.h"
#include "tutti/store/store.h"
#include "tutti/synth/given_rings.h"

namespace tutti::controller {
namespace {

using Json = nlohmann::json;

// Where ranks share a host: nothing is decided by it, as all schedules of a strategy have the same rings.
constexpr int64_t kInsideHostBandwidth = 100'000'000'000;
constexpr int64_t kNominalAlphaPs = 10'000'000;

// Rank of the communicator, by rank of the network.
using Members = std::map<int32_t, int32_t>;

Result<Topology> NetworkOfRings(const ClusterConfig& config, std::string_view policy,
                                const Members& members, const JobStrategy& strategy) {
  Topology::Builder builder(static_cast<int32_t>(members.size()));
  builder.SetName(std::string(policy));
  for (const std::vector<int32_t>& ring : strategy.rings)
    for (size_t i = 0; i < ring.size(); ++i) {
      const int32_t from = ring[i], to = ring[(i + 1) % ring.size()];
      const bool inside = config.view.place(from).host == config.view.place(to).host;
      const int64_t bandwidth =
          inside ? kInsideHostBandwidth
                 : std::min(config.view.PortBandwidth(from), config.view.PortBandwidth(to));
      builder.AddLink(NodeId{members.at(from)}, NodeId{members.at(to)},
                      {.bandwidth = bandwidth, .alpha_ps = kNominalAlphaPs});
    }
  return std::move(builder).Build();
}

Result<std::string> Schedules(const Topology& network, std::string_view policy,
                              std::span<const std::vector<NodeId>> rings) {
  Json files = Json::array();
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    const Result<Collective> collective = Collective::Make(kind, network.num_ranks());
    if (!collective) return tl::unexpected(collective.error());
    const Result<Schedule> schedule = ScheduleOverRings(network, *collective, rings, {});
    if (!schedule) return tl::unexpected(schedule.error());
    files.push_back({{"name", fmt::format("{} {}", policy, Name(kind))},
                     {"text", ScheduleToJson(network, *schedule)}});
  }
  return files.dump();
}

std::string Flows(const ClusterConfig& config, const Members& members,
                  const JobStrategy& strategy) {
  const std::vector<int32_t> channels = ChannelsOfFlows(strategy);
  Json flows = Json::array();
  for (size_t i = 0; i < strategy.flows.size(); ++i) {
    const RingFlow& flow = strategy.flows[i];
    Json entry{
        {"from", members.at(flow.from)}, {"to", members.at(flow.to)}, {"channel", channels[i]}};
    if (const std::string& source = config.NicOf(flow.from_port); !source.empty())
      entry["source"] = source;
    if (const std::string& target = config.NicOf(flow.to_port); !target.empty())
      entry["target"] = target;
    const int32_t route = strategy.routes[i];
    if (route != kByEcmp && static_cast<size_t>(route) < config.routes.size()) {
      const PortRange& ports = config.routes[static_cast<size_t>(route)];
      entry["ports"] = {ports.first, ports.count};
    }
    flows.push_back(std::move(entry));
  }
  return flows.dump();
}

}  // namespace

std::vector<int32_t> ChannelsOfFlows(const JobStrategy& strategy) {
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  std::vector<int32_t> channels;
  for (const RingFlow& flow : strategy.flows) channels.push_back(seen[{flow.from, flow.to}]++);
  return channels;
}

Result<StrategyTexts> MakeStrategyTexts(const ClusterConfig& config, std::string_view policy,
                                        std::span<const int32_t> ranks,
                                        const JobStrategy& strategy) {
  Members members;
  for (size_t i = 0; i < ranks.size(); ++i) members[ranks[i]] = static_cast<int32_t>(i);
  std::vector<std::vector<NodeId>> rings;
  for (const std::vector<int32_t>& ring : strategy.rings) {
    std::vector<NodeId>& order = rings.emplace_back();
    for (const int32_t rank : ring) {
      const auto member = members.find(rank);
      if (member == members.end())
        return MakeError(ErrorCode::kInvalidArgument,
                         fmt::format("policy {}: rank {} of a ring is none of the communicator's",
                                     policy, rank));
      order.push_back(NodeId{member->second});
    }
  }
  if (ranks.size() < 2) return StrategyTexts{"[]", "[]"};
  const Result<Topology> network = NetworkOfRings(config, policy, members, strategy);
  if (!network) return tl::unexpected(network.error());
  Result<std::string> schedules = Schedules(*network, policy, rings);
  if (!schedules) return tl::unexpected(schedules.error());
  return StrategyTexts{std::move(*schedules), Flows(config, members, strategy)};
}

}  // namespace tutti::controller

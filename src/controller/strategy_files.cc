#include "strategy_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tutti/store/store.h"
#include "tutti/synth/given_rings.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti::controller {
namespace {

using Json = nlohmann::json;

// Between ranks that share a host, through its memory.
constexpr int64_t kInsideHostBandwidth = 100'000'000'000;
constexpr int64_t kInsideHostAlphaPs = 1'000'000;
// Up to here every rank has a connection to every other.
constexpr int32_t kMaxComplete = 16;

// Rank of the communicator, by rank of the network.
using Members = std::map<int32_t, int32_t>;

Members MembersOf(std::span<const int32_t> ranks) {
  Members members;
  for (size_t i = 0; i < ranks.size(); ++i) members[ranks[i]] = static_cast<int32_t>(i);
  return members;
}

// A connection between two ranks of the network.
struct Edge {
  int32_t from = 0, to = 0;
  int32_t from_port = 0, to_port = 0;
  int32_t route = kByEcmp;
};

// What each edge has of the links that it passes, where all send at once and links are shared in equal parts; one by ECMP
// is on all its routes in equal parts.
std::vector<LinkSpec> SpecsOf(const ClusterConfig& config, std::span<const Edge> edges) {
  constexpr int64_t kWhole = 720720;  // a multiple of every number of routes up to 16
  const ClusterView& view = config.view;
  const auto routes_of = [&](const Edge& edge) {
    const int32_t number = view.NumRoutes(view.RouteSet(edge.from_port, edge.to_port));
    // Inside a rack there is one, whatever a provider's own policy says.
    return edge.route == kByEcmp || edge.route >= number ? std::pair(0, number)
                                                         : std::pair(edge.route, edge.route + 1);
  };
  const auto is_inside = [&](const Edge& edge) {
    return view.place(edge.from).host == view.place(edge.to).host;
  };
  std::vector<int64_t> users(static_cast<size_t>(view.num_links()));
  for (const Edge& edge : edges) {
    if (is_inside(edge)) continue;
    const auto [first, end] = routes_of(edge);
    for (int32_t route = first; route < end; ++route)
      for (const LinkId link : view.Path(edge.from_port, edge.to_port, route))
        users[link.index()] += kWhole / (end - first);
  }
  std::vector<LinkSpec> specs;
  for (const Edge& edge : edges) {
    LinkSpec spec{.bandwidth = kInsideHostBandwidth, .alpha_ps = kInsideHostAlphaPs};
    if (!is_inside(edge)) {
      spec.alpha_ps = 0;
      const auto [first, end] = routes_of(edge);
      for (int32_t route = first; route < end; ++route) {
        int64_t alpha_ps = 0;
        for (const LinkId link : view.Path(edge.from_port, edge.to_port, route)) {
          const auto share = static_cast<__int128>(view.bandwidth(link)) * kWhole;
          spec.bandwidth =
              std::min(spec.bandwidth, static_cast<int64_t>(share / users[link.index()]));
          alpha_ps += config.topology.alpha_ps(link);
        }
        spec.alpha_ps = std::max(spec.alpha_ps, alpha_ps);
      }
    }
    spec.bandwidth = std::max<int64_t>(1, spec.bandwidth);
    specs.push_back(spec);
  }
  return specs;
}

// The edges as a network between the ranks of the communicator.
Result<Topology> NetworkOf(const ClusterConfig& config, const std::string& name,
                           const Members& members, std::span<const Edge> edges) {
  const std::vector<LinkSpec> specs = SpecsOf(config, edges);
  Topology::Builder builder(static_cast<int32_t>(members.size()));
  builder.SetName(name);
  for (size_t i = 0; i < edges.size(); ++i)
    builder.AddLink(NodeId{members.at(edges[i].from)}, NodeId{members.at(edges[i].to)}, specs[i]);
  return std::move(builder).Build();
}

std::vector<Edge> EdgesOfRings(const JobStrategy& strategy) {
  std::vector<Edge> edges;
  size_t next = 0;  // of the flows, which are the edges between hosts in the same order
  for (const std::vector<int32_t>& ring : strategy.rings)
    for (size_t i = 0; i < ring.size(); ++i) {
      Edge edge{.from = ring[i], .to = ring[(i + 1) % ring.size()]};
      edge.from_port = edge.from;
      edge.to_port = edge.to;
      if (next < strategy.flows.size() && strategy.flows[next].from == edge.from &&
          strategy.flows[next].to == edge.to) {
        edge.from_port = strategy.flows[next].from_port;
        edge.to_port = strategy.flows[next].to_port;
        edge.route = strategy.routes[next++];
      }
      edges.push_back(edge);
    }
  return edges;
}

// Fewest steps: every rank to every other, or, of many ranks, to four.
Result<std::vector<Edge>> EdgesOfFewSteps(std::span<const int32_t> ranks) {
  const auto number = static_cast<int32_t>(ranks.size());
  const Result<Topology> network =
      ParseTopology(number <= kMaxComplete ? fmt::format("complete({})", number)
                                           : fmt::format("genkautz(4,{})", number));
  if (!network) return tl::unexpected(network.error());
  std::vector<Edge> edges;
  for (const LinkId link : network->Links()) {
    const int32_t from = ranks[network->tail(link).index()];
    const int32_t to = ranks[network->head(link).index()];
    edges.push_back({.from = from, .to = to, .from_port = from, .to_port = to});
  }
  return edges;
}

constexpr std::array kKinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                               CollectiveKind::kReduceScatter};

// By `make`, as files called after `label`.
Status AddSchedules(const Topology& network, const std::string& label,
                    const std::function<Result<Schedule>(const Topology&, const Collective&)>& make,
                    Json& files) {
  for (const CollectiveKind kind : kKinds) {
    const Result<Collective> collective = Collective::Make(kind, network.num_ranks());
    if (!collective) return tl::unexpected(collective.error());
    const Result<Schedule> schedule = make(network, *collective);
    if (!schedule) return tl::unexpected(schedule.error());
    files.push_back({{"name", fmt::format("{} {}", label, Name(kind))},
                     {"text", ScheduleToJson(network, *schedule)}});
  }
  return {};
}

Status AddFewSteps(const ClusterConfig& config, std::span<const int32_t> ranks,
                   const Members& members, Json& files) {
  const Result<std::vector<Edge>> edges = EdgesOfFewSteps(ranks);
  if (!edges) return tl::unexpected(edges.error());
  const Result<Topology> network = NetworkOf(config, "few steps", members, *edges);
  if (!network) return tl::unexpected(network.error());
  const Result<const Synthesizer*> bfb = FindSynthesizer("bfb");
  if (!bfb) return tl::unexpected(bfb.error());
  return AddSchedules(
      *network, "few steps",
      [&bfb](const Topology& topology, const Collective& collective) {
        return RunSynthesizer(**bfb, topology, collective, {});
      },
      files);
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
      // Where nothing comes back on that one, the others are taken in turn.
      const auto routes = std::min<size_t>(
          config.routes.size(), static_cast<size_t>(config.view.NumRoutes(
                                    config.view.RouteSet(flow.from_port, flow.to_port))));
      Json others = Json::array();
      for (size_t next = 1; next < routes; ++next) {
        const PortRange& other = config.routes[(static_cast<size_t>(route) + next) % routes];
        others.push_back({other.first, other.count});
      }
      if (!others.empty()) entry["others"] = std::move(others);
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

StrategyTexts TextsOf(const ClusterConfig& config, std::string_view label,
                      std::span<const int32_t> ranks, const JobStrategy& strategy,
                      std::span<const std::pair<Topology, Schedule>> files) {
  Json texts = Json::array();
  for (const auto& [network, schedule] : files)
    texts.push_back({{"name", fmt::format("{} {}", label, Name(schedule.collective.kind()))},
                     {"text", ScheduleToJson(network, schedule)}});
  return {texts.dump(), Flows(config, MembersOf(ranks), strategy)};
}

Result<StrategyTexts> MakeStrategyTexts(const ClusterConfig& config, std::string_view label,
                                        std::span<const int32_t> ranks, const JobStrategy& strategy,
                                        bool by_size) {
  const Members members = MembersOf(ranks);
  std::vector<std::vector<NodeId>> rings;
  for (const std::vector<int32_t>& ring : strategy.rings) {
    std::vector<NodeId>& order = rings.emplace_back();
    for (const int32_t rank : ring) {
      const auto member = members.find(rank);
      if (member == members.end())
        return MakeError(
            ErrorCode::kInvalidArgument,
            fmt::format("{}: rank {} of a ring is none of the communicator's", label, rank));
      order.push_back(NodeId{member->second});
    }
  }
  if (ranks.size() < 2) return StrategyTexts{"[]", "[]"};
  const Result<Topology> network =
      NetworkOf(config, std::string(label), members, EdgesOfRings(strategy));
  if (!network) return tl::unexpected(network.error());
  Json files = Json::array();
  if (Status added = AddSchedules(
          *network, std::string(label),
          [&rings](const Topology& topology, const Collective& collective) {
            return ScheduleOverRings(topology, collective, rings, {});
          },
          files);
      !added)
    return tl::unexpected(added.error());
  if (by_size)
    if (Status added = AddFewSteps(config, ranks, members, files); !added)
      return tl::unexpected(added.error());
  return StrategyTexts{files.dump(), Flows(config, members, strategy)};
}

}  // namespace tutti::controller

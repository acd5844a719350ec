#include "tutti/control/connection_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "tutti/base/random.h"
#include "tutti/control/flow_assignment.h"

namespace tutti {
namespace {

constexpr size_t kMostHops = size_t{1} << 24;

// Links from every node to `target` through switches.
std::vector<int32_t> HopsTo(const Topology& network, NodeId target) {
  std::vector<int32_t> hops(static_cast<size_t>(network.num_nodes()), -1);
  std::vector<NodeId> reached = {target};
  hops[target.index()] = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    // Ranks do not forward.
    if (i > 0 && network.is_rank(reached[i])) continue;
    for (const LinkId link : network.InLinks(reached[i])) {
      const NodeId tail = network.tail(link);
      if (hops[tail.index()] >= 0) continue;
      hops[tail.index()] = hops[reached[i].index()] + 1;
      reached.push_back(tail);
    }
  }
  return hops;
}

// What all of them begin and end with is no choice.
void TakeOffCommonEnds(std::vector<RouteOption>& options) {
  const auto alike = [&](const auto& link_of) {
    return std::all_of(options.begin(), options.end(), [&](const RouteOption& option) {
      return !option.links.empty() && link_of(option) == link_of(options.front());
    });
  };
  while (alike([](const RouteOption& option) { return option.links.front(); }))
    for (RouteOption& option : options) option.links.erase(option.links.begin());
  while (alike([](const RouteOption& option) { return option.links.back(); }))
    for (RouteOption& option : options) option.links.pop_back();
}

}  // namespace

int32_t ConnectionRoutes::HopsLeft(size_t connection, NodeId node) const {
  return hops_[target_[connection]][node.index()];
}

std::vector<LinkId> ConnectionRoutes::Next(size_t connection, NodeId node) const {
  std::vector<LinkId> next;
  int64_t widest = 0;
  for (const LinkId link : network_->OutLinks(node)) {
    const NodeId head = network_->head(link);
    if (network_->is_rank(head) && head != connections_[connection].to) continue;
    const int32_t left = HopsLeft(connection, head);
    if (left < 0 || left != HopsLeft(connection, node) - 1) continue;
    next.push_back(link);
    widest = std::max(widest, network_->bandwidth(link));
  }
  // Switches do not look at bandwidths, ranks know which port is which.
  if (network_->is_rank(node))
    std::erase_if(next, [&](LinkId link) { return network_->bandwidth(link) < widest; });
  return next;
}

Result<ConnectionRoutes> ConnectionRoutes::Make(const Topology& network,
                                                std::span<const Connection> connections) {
  ConnectionRoutes routes;
  routes.network_ = &network;
  routes.connections_.assign(connections.begin(), connections.end());
  std::map<NodeId, size_t> targets;
  std::map<std::pair<NodeId, NodeId>, int32_t> numbers;
  for (size_t i = 0; i < connections.size(); ++i) {
    const auto [from, to] = connections[i];
    for (const NodeId end : {from, to})
      if (end.value < 0 || end.value >= network.num_ranks())
        return InvalidArgument(
            fmt::format("connection {} from {} to {}, wanted ranks 0 to {} of {}", i, from.value,
                        to.value, network.num_ranks() - 1, network.name()));
    if (from == to)
      return InvalidArgument(fmt::format("connection {} from rank {} to itself", i, from.value));
    const auto [at, is_new] = targets.emplace(to, routes.hops_.size());
    if (is_new) routes.hops_.push_back(HopsTo(network, to));
    routes.target_.push_back(at->second);
    routes.number_.push_back(numbers[{from, to}]++);
    if (routes.HopsLeft(i, from) < 0)
      return InvalidArgument(fmt::format("no path through switches from {} to {}",
                                         network.node_name(from), network.node_name(to)));
  }
  return routes;
}

std::vector<LinkPath> ConnectionRoutes::ByHash(uint64_t seed) const {
  std::vector<LinkPath> paths(connections_.size());
  for (size_t i = 0; i < connections_.size(); ++i) {
    const auto [from, to] = connections_[i];
    // Mixed first: a small seed would only exchange ranks whose numbers differ in its bits.
    uint64_t state = Random(seed).Next();
    for (const int32_t word : {from.value, to.value, number_[i]})
      state = Random(state ^ static_cast<uint64_t>(word)).Next();
    for (NodeId node = from; node != to; node = network_->head(paths[i].back())) {
      const std::vector<LinkId> next = Next(i, node);
      Random of_node(Random(state ^ static_cast<uint64_t>(node.value)).Next());
      paths[i].push_back(next[of_node.Below(next.size())]);
    }
  }
  return paths;
}

std::vector<LinkPath> ConnectionRoutes::AllOf(size_t connection, size_t most) const {
  std::vector<LinkPath> done, open = {{}};
  const auto [from, to] = connections_[connection];
  size_t links = 0;
  while (!open.empty() && links <= most) {
    const LinkPath path = std::move(open.back());
    open.pop_back();
    const NodeId at = path.empty() ? from : network_->head(path.back());
    if (at == to) {
      links += path.size();
      done.push_back(path);
      continue;
    }
    // The last goes on the stack first: paths come in the order of their links.
    const std::vector<LinkId> next = Next(connection, at);
    for (auto link = next.rbegin(); link != next.rend(); ++link) {
      open.push_back(path);
      open.back().push_back(*link);
    }
  }
  return done;
}

Result<std::vector<LinkPath>> ConnectionRoutes::Fair() const {
  FlowProblem problem{.capacity = {}, .background = {}, .route_sets = {}, .flows = {}};
  for (const LinkId link : network_->Links()) problem.capacity.push_back(network_->bandwidth(link));
  std::vector<std::vector<LinkPath>> paths;
  std::vector<int32_t> first, last;
  size_t hops = 0;
  for (size_t i = 0; i < connections_.size(); ++i) {
    paths.push_back(AllOf(i, kMostHops));
    std::vector<RouteOption>& options = problem.route_sets.emplace_back();
    for (const LinkPath& path : paths.back()) {
      options.push_back({path, 0});
      hops += path.size();
    }
    if (hops > kMostHops)
      return InvalidArgument(fmt::format("more than {} links in all shortest paths", kMostHops));
    first.push_back(options.front().links.front().value);
    last.push_back(options.front().links.back().value);
    TakeOffCommonEnds(options);
    problem.flows.push_back({.route_set = static_cast<int32_t>(i)});
  }
  const std::vector<int64_t> demands = FlowDemands(first, last, problem.capacity);
  for (size_t i = 0; i < demands.size(); ++i) problem.flows[i].demand = demands[i];
  const Result<FlowAssignment> assigned = AssignFlows(problem);
  if (!assigned) return tl::unexpected(assigned.error());
  std::vector<LinkPath> chosen;
  chosen.reserve(paths.size());
  for (size_t i = 0; i < paths.size(); ++i)
    chosen.push_back(std::move(paths[i][static_cast<size_t>(assigned->route[i])]));
  return chosen;
}

}  // namespace tutti

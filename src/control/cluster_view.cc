#include "tutti/control/cluster_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tutti/base/host_name.h"

namespace tutti {
namespace {

constexpr size_t kMaxHops = size_t{1} << 25;

}  // namespace

std::span<const int32_t> ClusterView::RanksOf(int32_t host) const {
  const auto at = static_cast<size_t>(host);
  return std::span(ranks_of_host_)
      .subspan(static_cast<size_t>(first_rank_[at]),
               static_cast<size_t>(first_rank_[at + 1] - first_rank_[at]));
}

std::span<const LinkId> ClusterView::Route(int32_t route_set, int32_t route) const {
  const size_t at = static_cast<size_t>(first_route_[static_cast<size_t>(route_set)]) +
                    static_cast<size_t>(route);
  return std::span(hops_).subspan(static_cast<size_t>(first_hop_[at]),
                                  static_cast<size_t>(first_hop_[at + 1] - first_hop_[at]));
}

std::span<const LinkId> ClusterView::Up(int32_t rank) const {
  const auto at = static_cast<size_t>(rank);
  return std::span(up_).subspan(static_cast<size_t>(first_up_[at]),
                                static_cast<size_t>(first_up_[at + 1] - first_up_[at]));
}

std::span<const LinkId> ClusterView::Down(int32_t rank) const {
  const auto at = static_cast<size_t>(rank);
  return std::span(down_).subspan(static_cast<size_t>(first_down_[at]),
                                  static_cast<size_t>(first_down_[at + 1] - first_down_[at]));
}

std::vector<LinkId> ClusterView::Path(int32_t from_rank, int32_t to_rank, int32_t route) const {
  std::vector<LinkId> path;
  for (const auto part : {Up(from_rank), Route(RouteSet(from_rank, to_rank), route), Down(to_rank)})
    path.insert(path.end(), part.begin(), part.end());
  return path;
}

class ClusterViewMaker {
 public:
  explicit ClusterViewMaker(const Topology& topology) : topology_(topology) {}

  Result<ClusterView> Make() {
    for (const LinkId link : topology_.Links()) {
      view_.bandwidth_.push_back(topology_.bandwidth(link));
      view_.link_name_.push_back(fmt::format("{} -> {}", topology_.node_name(topology_.tail(link)),
                                             topology_.node_name(topology_.head(link))));
    }
    NameHosts();
    if (Status status = FindPorts(); !status) return tl::unexpected(status.error());
    NumberPods();
    if (Status status = FindRoutes(); !status) return tl::unexpected(status.error());
    return std::move(view_);
  }

 private:
  bool InFabric(NodeId node) const { return in_fabric_[node.index()]; }
  RankPlace& PlaceOf(NodeId rank) { return view_.places_[rank.index()]; }

  void NameHosts() {
    std::map<std::string, int32_t, std::less<>> hosts;
    std::vector<std::vector<int32_t>> ranks;
    view_.places_.resize(static_cast<size_t>(topology_.num_ranks()));
    for (const NodeId rank : topology_.Ranks()) {
      const auto [at, is_new] = hosts.emplace(ShortHostName(topology_.node_name(rank)),
                                              static_cast<int32_t>(hosts.size()));
      if (is_new) ranks.emplace_back();
      std::vector<int32_t>& own = ranks[static_cast<size_t>(at->second)];
      PlaceOf(rank).host = at->second;
      PlaceOf(rank).device = static_cast<int32_t>(own.size());
      own.push_back(rank.value);
    }
    view_.first_rank_.push_back(0);
    for (const std::vector<int32_t>& own : ranks) {
      view_.ranks_of_host_.insert(view_.ranks_of_host_.end(), own.begin(), own.end());
      view_.first_rank_.push_back(static_cast<int32_t>(view_.ranks_of_host_.size()));
    }
    in_fabric_.assign(static_cast<size_t>(topology_.num_nodes()), false);
    for (const NodeId node : topology_.Nodes()) {
      if (topology_.is_rank(node)) continue;
      const std::string& name = topology_.node_name(node);
      in_fabric_[node.index()] =
          name.find('.') == std::string::npos || hosts.find(ShortHostName(name)) == hosts.end();
    }
  }

  // The links of a shortest way over switches inside the host to the fabric (or back, `down`).
  std::vector<LinkId> WayToFabric(NodeId rank, bool down) const {
    std::vector<NodeId> reached = {rank};
    std::map<NodeId, LinkId> before;
    for (size_t i = 0; i < reached.size(); ++i) {
      const NodeId at = reached[i];
      if (InFabric(at)) {
        std::vector<LinkId> way;
        for (NodeId node = at; node != rank;) {
          way.push_back(before.at(node));
          node = down ? topology_.head(way.back()) : topology_.tail(way.back());
        }
        if (!down) std::reverse(way.begin(), way.end());
        return way;
      }
      std::vector<std::pair<NodeId, LinkId>> next;
      if (down)
        for (const LinkId link : topology_.InLinks(at))
          next.emplace_back(topology_.tail(link), link);
      else
        for (const LinkId link : topology_.OutLinks(at))
          next.emplace_back(topology_.head(link), link);
      std::sort(next.begin(), next.end());
      for (const auto& [node, link] : next)
        if (node != rank && !topology_.is_rank(node) && before.emplace(node, link).second)
          reached.push_back(node);
    }
    return {};
  }

  Status FindPorts() {
    std::map<NodeId, int32_t> racks;
    view_.first_up_ = view_.first_down_ = {0};
    for (const NodeId rank : topology_.Ranks()) {
      const std::vector<LinkId> up = WayToFabric(rank, false), down = WayToFabric(rank, true);
      if (up.empty() || down.empty())
        return InvalidArgument(
            fmt::format("{} of {} reaches no switch of a fabric: ports and routes are unknown",
                        topology_.node_name(rank), topology_.name()));
      const NodeId rack = topology_.head(up.back());
      if (topology_.tail(down.front()) != rack)
        return InvalidArgument(fmt::format("{} of {} sends to one switch and hears from another",
                                           topology_.node_name(rank), topology_.name()));
      const auto [at, is_new] = racks.emplace(rack, static_cast<int32_t>(racks.size()));
      if (is_new) rack_switch_.push_back(rack);
      PlaceOf(rank).rack = at->second;
      int64_t slowest = view_.bandwidth(up.front());
      for (const auto& way : {up, down})
        for (const LinkId link : way) slowest = std::min(slowest, view_.bandwidth(link));
      view_.port_bandwidth_.push_back(slowest);
      view_.up_.insert(view_.up_.end(), up.begin(), up.end());
      view_.down_.insert(view_.down_.end(), down.begin(), down.end());
      view_.first_up_.push_back(static_cast<int32_t>(view_.up_.size()));
      view_.first_down_.push_back(static_cast<int32_t>(view_.down_.size()));
    }
    view_.num_racks_ = static_cast<int32_t>(rack_switch_.size());
    return {};
  }

  template <class Visit>
  void ForFabricNeighbours(NodeId node, const Visit& visit) const {
    for (const LinkId link : topology_.OutLinks(node))
      if (InFabric(topology_.head(link))) visit(topology_.head(link), link);
  }

  // Where some fabric switch is next to no rack there are three levels, and the middle one makes
  // pods; otherwise all is one.
  void NumberPods() {
    std::vector<bool> low(static_cast<size_t>(topology_.num_nodes()), false);
    for (const NodeId rack : rack_switch_) {
      low[rack.index()] = true;
      ForFabricNeighbours(rack, [&](NodeId node, LinkId) { low[node.index()] = true; });
    }
    bool three = false;
    for (const NodeId node : topology_.Nodes()) three |= InFabric(node) && !low[node.index()];
    std::vector<int32_t> pod(static_cast<size_t>(topology_.num_nodes()), three ? -1 : 0);
    int32_t pods = 0;
    for (const NodeId rack : rack_switch_) {
      if (pod[rack.index()] >= 0) continue;
      std::vector<NodeId> reached = {rack};
      pod[rack.index()] = pods;
      for (size_t i = 0; i < reached.size(); ++i)
        ForFabricNeighbours(reached[i], [&](NodeId node, LinkId) {
          if (!low[node.index()] || pod[node.index()] >= 0) return;
          pod[node.index()] = pods;
          reached.push_back(node);
        });
      ++pods;
    }
    for (RankPlace& place : view_.places_)
      place.pod = pod[rack_switch_[static_cast<size_t>(place.rack)].index()];
  }

  Status FindRoutes() {
    std::vector<int32_t> distance;
    std::vector<LinkId> way;
    view_.first_route_ = view_.first_hop_ = {0};
    // Sets are by (from, to); distances by `to` are found once each.
    std::vector<std::vector<int32_t>> to_rack;
    to_rack.reserve(rack_switch_.size());
    for (const NodeId rack : rack_switch_) to_rack.push_back(DistancesTo(rack));
    for (const NodeId from : rack_switch_)
      for (size_t to = 0; to < rack_switch_.size(); ++to) {
        if (to_rack[to][from.index()] < 0)
          return InvalidArgument(fmt::format("no route through the fabric of {} from {} to {}",
                                             topology_.name(), topology_.node_name(from),
                                             topology_.node_name(rack_switch_[to])));
        if (!AddRoutes(from, rack_switch_[to], to_rack[to], way))
          return InvalidArgument(
              fmt::format("the routes between the racks of {} have more than {} hops in all",
                          topology_.name(), kMaxHops));
        view_.first_route_.push_back(static_cast<int32_t>(view_.first_hop_.size()) - 1);
      }
    return {};
  }

  std::vector<int32_t> DistancesTo(NodeId rack) const {
    std::vector<int32_t> distance(static_cast<size_t>(topology_.num_nodes()), -1);
    distance[rack.index()] = 0;
    std::vector<NodeId> reached = {rack};
    for (size_t i = 0; i < reached.size(); ++i)
      for (const LinkId link : topology_.InLinks(reached[i])) {
        const NodeId node = topology_.tail(link);
        if (!InFabric(node) || distance[node.index()] >= 0) continue;
        distance[node.index()] = distance[reached[i].index()] + 1;
        reached.push_back(node);
      }
    return distance;
  }

  // At most as deep as the fabric.
  // NOLINTNEXTLINE(misc-no-recursion)
  bool AddRoutes(NodeId at, NodeId to, const std::vector<int32_t>& distance,
                 std::vector<LinkId>& way) {
    if (at == to) {
      view_.hops_.insert(view_.hops_.end(), way.begin(), way.end());
      view_.first_hop_.push_back(static_cast<int32_t>(view_.hops_.size()));
      return view_.hops_.size() <= kMaxHops;
    }
    for (const LinkId link : topology_.OutLinks(at)) {
      const NodeId next = topology_.head(link);
      if (distance[next.index()] < 0 || distance[next.index()] + 1 != distance[at.index()])
        continue;
      way.push_back(link);
      const bool fits = AddRoutes(next, to, distance, way);
      way.pop_back();
      if (!fits) return false;
    }
    return true;
  }

  const Topology& topology_;
  ClusterView view_;
  std::vector<bool> in_fabric_;
  std::vector<NodeId> rack_switch_;
};

Result<ClusterView> ClusterView::Make(const Topology& topology) {
  return ClusterViewMaker(topology).Make();
}

}  // namespace tutti

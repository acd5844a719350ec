#include "tutti/sched/routing.h"

#include <algorithm>

#include "tutti/base/check.h"

namespace tutti {

IdRange<PathId> Routing::Paths(NodeId source, NodeId destination) const {
  const size_t pair = source.index() * static_cast<size_t>(num_ranks) + destination.index();
  return {static_cast<int32_t>(first_path[pair]), static_cast<int32_t>(first_path[pair + 1])};
}

std::span<const LinkId> Routing::Hops(PathId path) const {
  const auto begin = static_cast<size_t>(first_hop[path.index()]);
  const auto end = static_cast<size_t>(first_hop[path.index() + 1]);
  return std::span(hops).subspan(begin, end - begin);
}

RoutingBuilder::RoutingBuilder(int32_t num_ranks, int64_t units_per_demand) {
  routing_.num_ranks = num_ranks;
  routing_.units_per_demand = units_per_demand;
  routing_.first_path.push_back(0);
  routing_.first_hop.push_back(0);
}

void RoutingBuilder::AddPath(std::span<const LinkId> hops, int64_t weight) {
  TUTTI_CHECK(!hops.empty() && weight >= 1);
  routing_.hops.insert(routing_.hops.end(), hops.begin(), hops.end());
  routing_.first_hop.push_back(static_cast<int64_t>(routing_.hops.size()));
  routing_.weight.push_back(weight);
}

void RoutingBuilder::EndPair() { routing_.first_path.push_back(routing_.num_paths()); }

Routing RoutingBuilder::Finish() && {
  const auto ranks = static_cast<size_t>(routing_.num_ranks);
  TUTTI_CHECK(routing_.first_path.size() == ranks * ranks + 1);
  return std::move(routing_);
}

Result<Collective> CollectiveOf(const Routing& routing) {
  if (!routing.groups.empty())
    return Collective::Make(CollectiveKind::kAllToAll, routing.num_ranks,
                            {.groups = routing.groups});
  return Collective::Make(
      routing.demand.empty() ? CollectiveKind::kAllToAll : CollectiveKind::kAllToAllV,
      routing.num_ranks, {.demand = routing.demand});
}

std::vector<int64_t> LinkUnits(const Topology& topology, const Routing& routing) {
  std::vector<int64_t> units(static_cast<size_t>(topology.num_links()));
  for (const PathId path : IdRange<PathId>(0, static_cast<int32_t>(routing.num_paths())))
    for (const LinkId link : routing.Hops(path))
      units[link.index()] += routing.weight[path.index()];
  return units;
}

namespace {

// That a mean demand is over.
int64_t PairsOf(const Routing& routing) {
  const auto pairs = [](size_t k) { return static_cast<int64_t>(k * (k - 1)); };
  if (routing.groups.empty()) return pairs(static_cast<size_t>(routing.num_ranks));
  int64_t sum = 0;
  for (const auto& group : routing.groups) sum += pairs(group.size());
  return sum;
}

}  // namespace

Rational MeanDemand(const Routing& routing) {
  if (routing.demand.empty()) return Rational(1);
  const int64_t ranks = routing.num_ranks;
  Rational total;
  for (int64_t source = 0; source < ranks; ++source)
    for (int64_t destination = 0; destination < ranks; ++destination)
      if (source != destination)
        total += Rational(routing.demand[static_cast<size_t>(source * ranks + destination)]);
  return total / Rational(PairsOf(routing));
}

std::vector<int64_t> DemandOfGroups(const Collective& collective) {
  const auto n = static_cast<size_t>(collective.num_ranks());
  std::vector<int64_t> demand(n * n, 0);
  for (const Collective::Group& group : collective.groups()) {
    const int64_t weight = collective.weight(ShardId{group.first_shard});
    for (const NodeId source : group.members)
      for (const NodeId destination : group.members)
        if (source != destination) demand[source.index() * n + destination.index()] += weight;
  }
  return demand;
}

namespace {

// What each rank sends to others, and what it receives from them.
struct OwnDemand {
  std::vector<Rational> sent, received;  // by rank
};

OwnDemand OwnDemandOf(std::span<const int64_t> demand, int32_t num_ranks) {
  const auto ranks = static_cast<size_t>(num_ranks);
  if (demand.empty()) {
    const std::vector<Rational> alike(ranks, Rational(num_ranks - 1));
    return {alike, alike};
  }
  OwnDemand own{std::vector<Rational>(ranks), std::vector<Rational>(ranks)};
  for (size_t source = 0; source < ranks; ++source)
    for (size_t destination = 0; destination < ranks; ++destination) {
      const int64_t entry = demand[source * ranks + destination];
      if (source == destination || entry == 0) continue;
      own.sent[source] += Rational(entry);
      own.received[destination] += Rational(entry);
    }
  return own;
}

}  // namespace

std::optional<Rational> HostRate(const Topology& topology, std::span<const int64_t> demand) {
  if (!topology.has_host_limits()) return std::nullopt;
  const OwnDemand own = OwnDemandOf(demand, topology.num_ranks());
  Rational slowest;  // seconds a byte a unit of demand
  for (const NodeId rank : topology.Ranks())
    if (const auto limit = topology.host_bandwidth(rank))
      slowest = std::max(
          slowest, std::max(own.sent[rank.index()], own.received[rank.index()]) / Rational(*limit));
  if (slowest.is_zero()) return std::nullopt;
  Rational total;
  for (const Rational& sent : own.sent) total += sent;
  const int64_t ranks = topology.num_ranks();
  const Rational mean = total / Rational(ranks * (ranks - 1));
  return mean / (slowest * Rational(topology.min_bandwidth()));
}

std::optional<Rational> HostRate(const Topology& topology, const Routing& routing) {
  const std::optional<Rational> rate = HostRate(topology, routing.demand);
  const int64_t ranks = routing.num_ranks;
  if (!rate || routing.groups.empty()) return rate;
  return *rate * Rational(ranks * (ranks - 1), PairsOf(routing));
}

Rational RoutingRate(const Topology& topology, const Routing& routing) {
  // The busiest link's units a byte/s of it.
  Rational busiest;
  const std::vector<int64_t> units = LinkUnits(topology, routing);
  for (const LinkId link : topology.Links()) {
    const Rational load(units[link.index()], topology.bandwidth(link));
    if (busiest < load) busiest = load;
  }
  if (busiest == Rational(0)) return Rational(0);
  const Rational of_links = Rational(routing.units_per_demand) * MeanDemand(routing) /
                            (busiest * Rational(topology.min_bandwidth()));
  const std::optional<Rational> of_hosts = HostRate(topology, routing);
  return of_hosts ? std::min(of_links, *of_hosts) : of_links;
}

}  // namespace tutti

#include "tutti/sched/routing.h"

#include <algorithm>
#include <numeric>

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

std::vector<int64_t> LinkUnits(const Topology& topology, const Routing& routing) {
  std::vector<int64_t> units(static_cast<size_t>(topology.num_links()));
  for (const PathId path : IdRange<PathId>(0, static_cast<int32_t>(routing.num_paths())))
    for (const LinkId link : routing.Hops(path))
      units[link.index()] += routing.weight[path.index()];
  return units;
}

Rational MeanDemand(const Routing& routing) {
  if (routing.demand.empty()) return Rational(1);
  const int64_t ranks = routing.num_ranks;
  Rational total;
  for (int64_t source = 0; source < ranks; ++source)
    for (int64_t destination = 0; destination < ranks; ++destination)
      if (source != destination)
        total += Rational(routing.demand[static_cast<size_t>(source * ranks + destination)]);
  return total / Rational(ranks * (ranks - 1));
}

Rational RoutingRate(const Topology& topology, const Routing& routing) {
  int64_t smallest = 0;
  for (const LinkId link : topology.Links())
    smallest =
        smallest == 0 ? topology.bandwidth(link) : std::min(smallest, topology.bandwidth(link));
  // The busiest link's units a byte/s of it.
  Rational busiest;
  const std::vector<int64_t> units = LinkUnits(topology, routing);
  for (const LinkId link : topology.Links()) {
    const Rational load(units[link.index()], topology.bandwidth(link));
    if (busiest < load) busiest = load;
  }
  if (busiest == Rational(0)) return Rational(0);
  return Rational(routing.units_per_demand) * MeanDemand(routing) / (busiest * Rational(smallest));
}

}  // namespace tutti

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "tutti/base/memory.h"
#include "tutti/route/router.h"
#include "tutti/topo/group_network.h"

namespace tutti {
namespace {

// The paths of the joined network where they are in `topology`.
Routing InNetwork(const Topology& topology, const GroupNetwork& group, const Routing& joined) {
  const auto n = static_cast<size_t>(topology.num_ranks());
  std::vector<int32_t> place(n, -1);
  for (const NodeId rank : group.network.Ranks())
    place[group.node_of[rank.index()].index()] = rank.value;
  RoutingBuilder builder(topology.num_ranks(), joined.units_per_demand);
  std::vector<LinkId> hops;
  for (size_t s = 0; s < n; ++s)
    for (size_t d = 0; d < n; ++d) {
      if (place[s] >= 0 && place[d] >= 0)
        for (const PathId path : joined.Paths(NodeId{place[s]}, NodeId{place[d]})) {
          hops.clear();
          for (const LinkId link : joined.Hops(path)) hops.push_back(group.link_of[link.index()]);
          builder.AddPath(hops, joined.weight[path.index()]);
        }
      builder.EndPair();
    }
  return std::move(builder).Finish();
}

}  // namespace

Result<Routed> RunRouterOfGroups(const Router& router, const Topology& topology,
                                 const Collective& collective, const RouterOptions& options) {
  if (!collective.is_all_to_all() || !collective.has_groups())
    return InvalidArgument(fmt::format(
        "routers choose the paths of all-to-all of groups, not of {}", Name(collective.kind())));
  const int64_t ranks = topology.num_ranks();
  constexpr int64_t kBytesPerPair = 2 * sizeof(int64_t);
  if (const Status fits = CheckMemory(fmt::format("the pairs of {} ranks", ranks),
                                      kBytesPerPair * ranks * ranks, AvailableMemoryBytes());
      !fits)
    return tl::unexpected(fits.error());
  const Result<GroupNetwork> group = MakeGroupNetwork(
      topology, collective.JoinedRanks(), [&](NodeId node) { return collective.IsIdle(node); });
  if (!group) return tl::unexpected(group.error());
  const Collective joined = collective.Joined();
  RouterOptions on_group = options;
  on_group.demand = joined.demand();
  Result<Routed> routed = RunRouter(router, group->network, on_group);
  if (!routed) return routed;

  Routing routing = InNetwork(topology, *group, routed->routing);
  routing.demand = DemandOfGroups(collective);
  for (const Collective::Group& one : collective.groups()) routing.groups.push_back(one.members);
  routing.topology_fingerprint = topology.Fingerprint();
  routing.algorithm = routed->routing.algorithm;
  routing.seed = routed->routing.seed;
  const Rational unit = collective.RateOverJoined() *
                        Rational(group->network.min_bandwidth(), topology.min_bandwidth());
  for (std::optional<Rational>* upper : {&routed->f_upper, &routed->paths_upper})
    if (*upper) **upper *= unit;
  routed->routing = std::move(routing);
  return routed;
}

}  // namespace tutti

#include "tutti/bounds/proven_bounds.h"

#include <algorithm>
#include <utility>

#include "group_bounds.h"
#include "tutti/base/cancel.h"
#include "tutti/flow/concurrent_flow.h"
#include "tutti/topo/group_network.h"

namespace tutti {
namespace {

// The flow of all-to-all, as close as about a second allows; nothing where that is not close.
std::optional<HostedFlow> AffordableFlow(const Topology& topology, const Collective& collective) {
  constexpr int64_t kMaxPartitionVisits = 100'000'000, kMinPasses = 5, kMaxTriedPasses = 1000;
  const int64_t visits =
      int64_t{topology.num_ranks()} * (int64_t{topology.num_nodes()} + topology.num_links());
  if (topology.num_ranks() < 2 || kMaxPartitionVisits / visits < kMinPasses) return std::nullopt;
  ConcurrentFlowOptions options;
  options.max_passes =
      static_cast<int32_t>(std::min(kMaxPartitionVisits / visits, kMaxTriedPasses));
  options.demand = collective.demand();
  Result<HostedFlow> flow = SolveHostedFlow(topology, options);
  return flow ? std::optional(*std::move(flow)) : std::nullopt;
}

// Where the flow's lengths prove more than the bound's own. `f_upper` in the unit of the bounds.
void Tighten(const Rational& f_upper, Bounds& bounds) {
  if (!bounds.f_upper || f_upper >= *bounds.f_upper) return;
  const Rational factor = *bounds.f_upper / f_upper;
  bounds.seconds_per_byte *= factor;
  bounds.tb *= factor;
  bounds.f_upper = f_upper;
  bounds.bandwidth_reason = "lengths of the concurrent flow";
  bounds.cut.reset();
}

// As ProveBounds, on the network of all that are in a group.
Result<ProvenBounds> ProveOfGroups(const Topology& topology, const Collective& collective,
                                   ProvenBounds proven) {
  const Result<GroupNetwork> group = MakeGroupNetwork(
      topology, collective.JoinedRanks(), [&](NodeId node) { return collective.IsIdle(node); });
  if (!group) return tl::unexpected(group.error());
  const std::optional<HostedFlow> flow = AffordableFlow(group->network, collective.Joined());
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (!flow) return proven;
  Tighten(RateOfGroups(topology, collective, group->network, flow->f_upper), proven.bounds);
  // Ranks outside the groups have their host limits in the bounds, not in this flow.
  if (!topology.has_host_limits())
    proven.f_lower = RateOfGroups(topology, collective, group->network, flow->f_lower);
  return proven;
}

}  // namespace

Result<ProvenBounds> ProveBounds(const Topology& topology, const Collective& collective) {
  Result<Bounds> bounds = ComputeBounds(topology, collective);
  if (!bounds) return tl::unexpected(bounds.error());
  ProvenBounds proven{*std::move(bounds), {}};
  if (!proven.bounds.f_upper) return proven;
  if (collective.has_groups()) return ProveOfGroups(topology, collective, std::move(proven));
  const Topology* const original = topology.original();
  const Topology& network = original != nullptr ? *original : topology;
  const std::optional<HostedFlow> flow = AffordableFlow(network, collective);
  if (CancelRequested()) return tl::unexpected(CancelledError());
  if (!flow) return proven;
  Tighten(flow->f_upper * Rational(network.min_bandwidth(), topology.min_bandwidth()),
          proven.bounds);
  if (original == nullptr) proven.f_lower = flow->f_lower;
  return proven;
}

Result<Bounds> BoundsOf(const Topology& topology, const Collective& collective) {
  return ProveBounds(topology, collective).map([](ProvenBounds proven) {
    return std::move(proven.bounds);
  });
}

}  // namespace tutti

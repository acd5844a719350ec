#include "tutti/bounds/proven_bounds.h"

#include <algorithm>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/flow/concurrent_flow.h"

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

}  // namespace

Result<ProvenBounds> ProveBounds(const Topology& topology, const Collective& collective) {
  Result<Bounds> bounds = ComputeBounds(topology, collective);
  if (!bounds) return tl::unexpected(bounds.error());
  ProvenBounds proven{*std::move(bounds), {}};
  if (!proven.bounds.f_upper) return proven;
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

#include "expand/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "memory.h"

namespace tutti::expand {

Status CheckBase(std::string_view operation, const Topology& base, const Schedule& schedule) {
  const auto fault = [operation](const std::string& message) {
    return InvalidArgument(fmt::format("{} of a schedule: {}", operation, message));
  };
  if (base.has_switches()) return fault("the network has switches, wanted ranks only");
  if (schedule.kind != ScheduleKind::kStep)
    return fault("the schedule is timed, wanted one in steps");
  if (schedule.collective.kind() != CollectiveKind::kAllGather)
    return fault(
        fmt::format("it is one of {}, wanted all-gather", Name(schedule.collective.kind())));
  if (schedule.collective.num_ranks() != base.num_ranks())
    return fault(fmt::format("it is for {} ranks, the network has {}",
                             schedule.collective.num_ranks(), base.num_ranks()));
  if (schedule.topology_fingerprint != base.Fingerprint())
    return fault("it was made for another network");
  return {};
}

Result<int32_t> RegularDegree(std::string_view operation, const Topology& base) {
  const auto fault = [operation](const std::string& message) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("{} of a schedule: the base is not regular: {}; 'bfb' makes a "
                                 "schedule for any network",
                                 operation, message));
  };
  const NodeId first{0};
  for (NodeId node : base.Nodes()) {
    if (base.out_degree(node) != base.in_degree(node))
      return fault(fmt::format("'{}' has {} ports out and {} in", base.node_name(node),
                               base.out_degree(node), base.in_degree(node)));
    if (base.out_degree(node) != base.out_degree(first))
      return fault(fmt::format("'{}' has {} ports, '{}' has {}", base.node_name(first),
                               base.out_degree(first), base.node_name(node),
                               base.out_degree(node)));
  }
  return base.out_degree(first);
}

int32_t UsedSteps(const Schedule& schedule) {
  return schedule.transfers.empty() ? 0 : schedule.transfers.back().step + 1;
}

Result<int32_t> MultiplyUnits(int64_t a, int64_t b) {
  const int64_t product = SaturatingMul(a, b);
  if (product > std::numeric_limits<int32_t>::max())
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("the expanded schedule needs {} times {} units a shard, at most "
                                 "{} can be counted",
                                 a, b, std::numeric_limits<int32_t>::max()));
  return static_cast<int32_t>(product);
}

Result<Schedule> Start(const Topology& topology, int32_t units_per_shard, uint64_t seed,
                       int64_t num_transfers) {
  if (const Status fits = CheckMemoryFor(num_transfers); !fits) return tl::unexpected(fits.error());
  const Result<Collective> collective =
      Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
  if (!collective) return tl::unexpected(collective.error());
  Schedule schedule{.collective = *collective};
  schedule.units_per_shard = units_per_shard;
  schedule.topology_fingerprint = topology.Fingerprint();
  schedule.algorithm = "expand";
  schedule.seed = seed;
  schedule.transfers.reserve(static_cast<size_t>(num_transfers));
  return schedule;
}

}  // namespace tutti::expand

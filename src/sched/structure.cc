#include "tutti/sched/structure.h"

#include <fmt/format.h>

namespace tutti {

Status CheckHeader(const Topology& topology, const Schedule& header) {
  const bool timed = header.kind == ScheduleKind::kTimed;
  if (header.units_per_shard < 1)
    return InvalidArgument(
        fmt::format("units_per_shard is at least 1, got {}", header.units_per_shard));
  if (header.num_steps < 0)
    return InvalidArgument(fmt::format("the number of steps is negative: {}", header.num_steps));
  if (timed && header.num_steps != 0)
    return InvalidArgument(fmt::format("a timed schedule has no steps, got {}", header.num_steps));
  if (timed && header.size_bytes < 0)
    return InvalidArgument(fmt::format("the size is negative: {} bytes", header.size_bytes));
  if (header.collective.num_ranks() != topology.num_ranks())
    return InvalidArgument(fmt::format("the collective has {} ranks, the topology {}",
                                       header.collective.num_ranks(), topology.num_ranks()));
  return {};
}

TransferChecker::TransferChecker(const Topology& topology, const Schedule& header)
    : timed_(header.kind == ScheduleKind::kTimed),
      num_shards_(header.collective.num_shards()),
      num_links_(topology.num_links()),
      units_(header.units_per_shard),
      step_limit_(timed_ ? 1 : header.num_steps) {}

std::string TransferChecker::Explain(const Transfer& transfer, int64_t start_ps) const {
  const auto outside = [](const char* what, int32_t got, int32_t limit) {
    return fmt::format("{} {} is outside [0, {})", what, got, limit);
  };
  if (transfer.shard.value < 0 || transfer.shard.value >= num_shards_)
    return outside("shard", transfer.shard.value, num_shards_);
  if (transfer.link.value < 0 || transfer.link.value >= num_links_)
    return outside("link", transfer.link.value, num_links_);
  if (transfer.begin < 0 || transfer.begin >= transfer.end || transfer.end > units_)
    return fmt::format("[{}, {}) is no interval of a shard of {} units", transfer.begin,
                       transfer.end, units_);
  if (transfer.step < 0 || transfer.step >= step_limit_)
    return outside("step", transfer.step, step_limit_);
  if (timed_)
    return fmt::format("it starts at {} ps, after one that starts at {} ps; transfers ascend",
                       start_ps, last_time_);
  return fmt::format("step {} comes after step {}; transfers ascend", transfer.step, last_time_);
}

Status CheckStructure(const Topology& topology, const Schedule& schedule) {
  if (const Status header = CheckHeader(topology, schedule); !header) return header;
  const bool timed = schedule.kind == ScheduleKind::kTimed;
  if (schedule.start_ps.size() != (timed ? schedule.transfers.size() : 0))
    return InvalidArgument(fmt::format("{} start times for {} transfers of a {} schedule",
                                       schedule.start_ps.size(), schedule.transfers.size(),
                                       timed ? "timed" : "step"));
  TransferChecker checker(topology, schedule);
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    const int64_t start_ps = timed ? schedule.start_ps[i] : 0;
    if (!checker.Accept(schedule.transfers[i], start_ps))
      return InvalidArgument(
          fmt::format("transfer {}: {}", i, checker.Explain(schedule.transfers[i], start_ps)));
  }
  return {};
}

Status CheckMadeFor(const Topology& topology, const Schedule& schedule) {
  if (schedule.topology_fingerprint != topology.Fingerprint())
    return InvalidArgument("the schedule was made for another topology than " +
                           (topology.name().empty() ? std::string("this one") : topology.name()));
  return CheckStructure(topology, schedule);
}

}  // namespace tutti

#include "tutti/sim/simulator.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "recorder.h"
#include "runs.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace {

bool IsTimed(const Schedule& schedule) { return schedule.kind == ScheduleKind::kTimed; }

Status CheckWhole(const Topology& topology, const Schedule& schedule, const SimOptions& options) {
  if (options.size_bytes < 1)
    return InvalidArgument(
        fmt::format("the size is {} bytes, wanted at least 1", options.size_bytes));
  if (schedule.collective.num_ranks() != topology.num_ranks() ||
      schedule.topology_fingerprint != topology.Fingerprint())
    return InvalidArgument("the schedule was made for another topology than " +
                           (topology.name().empty() ? std::string("this one") : topology.name()));
  if (schedule.units_per_shard < 1 || schedule.num_steps < 0)
    return InvalidArgument(fmt::format("the schedule has {} units a shard and {} steps",
                                       schedule.units_per_shard, schedule.num_steps));
  if (topology.has_host_limits() && (IsTimed(schedule) || options.step_mode != StepMode::kBarrier))
    return MakeError(
        ErrorCode::kInfeasible,
        "the network has host limits, which only steps with a barrier (--mode barrier) "
        "are simulated with");
  const size_t count = schedule.transfers.size();
  if (count > std::numeric_limits<uint32_t>::max())
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} transfers; at most 2^32 - 1 can be simulated", count));
  if (schedule.start_ps.size() != (IsTimed(schedule) ? count : 0))
    return InvalidArgument(fmt::format("the schedule has {} start times for {} transfers",
                                       schedule.start_ps.size(), count));
  return {};
}

Status CheckTransfers(const Topology& topology, const Schedule& schedule) {
  const bool timed = IsTimed(schedule);
  int32_t step = 0;
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const char* fault = nullptr;
    if (transfer.link.value < 0 || transfer.link.value >= topology.num_links())
      fault = "a link that does not exist";
    else if (transfer.shard.value < 0 || transfer.shard.value >= schedule.collective.num_shards())
      fault = "a shard that does not exist";
    else if (transfer.begin < 0 || transfer.begin >= transfer.end ||
             transfer.end > schedule.units_per_shard)
      fault = "an interval outside its shard";
    else if (timed ? transfer.step != 0
                   : transfer.step < step || transfer.step >= schedule.num_steps)
      fault = "a step out of order or range";
    else if (timed && schedule.start_ps[i] < (i == 0 ? 0 : schedule.start_ps[i - 1]))
      fault = "a start time out of order";
    if (fault != nullptr) return InvalidArgument(fmt::format("transfer {} has {}", i, fault));
    step = transfer.step;
  }
  return {};
}

}  // namespace

Result<SimReport> Simulate(const Topology& topology, const Schedule& schedule,
                           const SimOptions& options) {
  if (Status status = CheckWhole(topology, schedule, options); !status)
    return tl::unexpected(status.error());
  if (Status status = CheckTransfers(topology, schedule); !status)
    return tl::unexpected(status.error());
  sim::Recorder recorder(topology, schedule, options);
  if (IsTimed(schedule))
    sim::RunTimed(topology, schedule, recorder);
  else if (options.step_mode == StepMode::kBarrier)
    sim::RunWithBarriers(topology, schedule, recorder);
  else
    sim::RunEagerly(topology, schedule, recorder);
  if (CancelRequested()) return tl::unexpected(CancelledError());
  return std::move(recorder).Finish();
}

}  // namespace tutti

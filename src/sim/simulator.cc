#include "tutti/sim/simulator.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "recorder.h"
#include "runs.h"
#include "tutti/base/cancel.h"
#include "tutti/sched/structure.h"

namespace tutti {
namespace {

bool IsTimed(const Schedule& schedule) { return schedule.kind == ScheduleKind::kTimed; }

Status CheckLimits(const Topology& topology, const Schedule& schedule, const SimOptions& options) {
  if (options.size_bytes < 1)
    return InvalidArgument(
        fmt::format("the size is {} bytes, wanted at least 1", options.size_bytes));
  if (topology.has_host_limits() && IsTimed(schedule))
    return MakeError(ErrorCode::kInfeasible,
                     "the network has host limits, which only schedules in steps are simulated "
                     "with; this one is timed");
  const size_t count = schedule.transfers.size();
  if (count > std::numeric_limits<uint32_t>::max())
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("{} transfers; at most 2^32 - 1 can be simulated", count));
  return {};
}

}  // namespace

Result<SimReport> Simulate(const Topology& topology, const Schedule& schedule,
                           const SimOptions& options) {
  if (Status status = CheckMadeFor(topology, schedule); !status)
    return tl::unexpected(status.error());
  if (Status status = CheckLimits(topology, schedule, options); !status)
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

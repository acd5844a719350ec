#include "tutti/runtime/executor.h"

#include <algorithm>

#include "run.h"
#include "supervisor.h"

namespace tutti {
namespace {

// nccl-tests counts the elements of one shard where ranks hold different ones.
int64_t CountOf(const Session& session) {
  const Collective& collective = session.plan().collective;
  const int64_t elements = session.layout().size_bytes() / session.layout().element_bytes();
  switch (collective.kind()) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      return elements;
    default:
      return elements / collective.num_ranks();
  }
}

RunReport Report(const Session& session) {
  RunReport report;
  report.size_bytes = session.layout().size_bytes();
  report.count = CountOf(session);
  // Of an iteration, from the release of all to the end of the slowest.
  report.time_s = static_cast<double>(session.control().measured_ns.load()) * 1e-9 /
                  session.options().iterations;
  if (report.time_s > 0) report.algbw = static_cast<double>(report.size_bytes) / report.time_s;
  report.busbw = report.algbw * session.plan().collective.BusFactor().ToDouble();
  report.wrong = session.options().check ? 0 : -1;
  for (int32_t rank = 0; rank < session.num_ranks(); ++rank) {
    if (session.options().check) report.wrong += session.rank(rank).wrong.load();
    if (session.options().record_trace)
      report.trace.insert(report.trace.end(), session.events(rank),
                          session.events(rank) + session.rank(rank).events.load());
  }
  return report;
}

}  // namespace

Result<RunReport> RunPlanAs(const Plan& plan, const RunOptions& options, const RunMode& mode) {
  const Result<Session> session = Session::Make(plan, options, mode.tuning);
  if (!session) return tl::unexpected(session.error());
  if (mode.in_threads) {
    RunAsThreads(*session);
  } else {
    const Status ran = RunAsProcesses(*session);
    if (!ran) return tl::unexpected(ran.error());
  }
  return Report(*session);
}

Result<RunReport> RunPlan(const Plan& plan, const RunOptions& options) {
  return RunPlanAs(plan, options, RunMode());
}

}  // namespace tutti

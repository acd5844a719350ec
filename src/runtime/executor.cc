#include "tutti/runtime/executor.h"

#include "rates.h"
#include "run.h"
#include "supervisor.h"
#include "trace_origin.h"

namespace tutti {
namespace {

RunReport Report(const Session& session) {
  RunReport report;
  report.size_bytes = session.layout().size_bytes();
  // Time of an iteration, from the release of all to the end of the slowest.
  report.time_s = static_cast<double>(session.control().measured_ns.load()) * 1e-9 /
                  session.options().iterations;
  FillRates(session.plan().collective, session.layout().element_bytes(), report);
  report.wrong = session.options().check ? 0 : -1;
  for (int32_t rank = 0; rank < session.num_ranks(); ++rank) {
    if (session.options().check) report.wrong += session.rank(rank).wrong.load();
    report.digest += session.rank(rank).digest.load();
    if (session.options().record_trace)
      report.trace.insert(report.trace.end(), session.events(rank),
                          session.events(rank) + session.rank(rank).events.load());
  }
  CountFromFirstStart(report.trace);
  return report;
}

}  // namespace

Result<RunReport> RunPlanAs(const Plan& plan, const RunOptions& options, const RunMode& mode) {
  Result<Session> session = Session::Make(plan, options, mode.tuning);
  if (!session) return tl::unexpected(session.error());
  session->SetDeath(mode.death);
  if (mode.in_threads) {
    RunAsThreads(*session);
  } else {
    const Status ran = RunAsProcesses(*session);
    if (!ran) return tl::unexpected(ran.error());
  }
  return Report(*session);
}

Result<int64_t> SizeThatRuns(const Plan& plan, const RunOptions& options) {
  const Result<Session> session = Session::Make(plan, options, RunMode().tuning);
  if (!session) return tl::unexpected(session.error());
  return session->layout().size_bytes();
}

Result<RunReport> RunPlan(const Plan& plan, const RunOptions& options) {
  return RunPlanAs(plan, options, RunMode());
}

}  // namespace tutti

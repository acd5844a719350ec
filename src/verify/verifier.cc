#include "tutti/verify/verifier.h"

#include <algorithm>
#include <array>
#include <utility>

#include "link_overlap.h"
#include "messages.h"
#include "problem.h"
#include "runs.h"
#include "structure.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"

namespace tutti {
namespace {

using verify::Finding;
using verify::Findings;
using verify::HoldingRun;
using verify::Problem;
using verify::ReducingRun;

// Shards of about this many transfers together are worth a task of their own.
constexpr int64_t kTransfersPerTask = 1 << 15;

template <class Run>
void RunShards(const Problem& problem, Findings& findings) {
  const int64_t num_shards = problem.collective().num_shards();
  const int64_t mean = problem.num_sound() / num_shards + 1;
  ProgressScope progress("verify", num_shards);
  FindInBlocks(findings, num_shards, std::max<int64_t>(1, kTransfersPerTask / mean),
               [&](int64_t begin, int64_t end, Findings& found) {
                 Run run(problem);
                 for (int64_t s = begin; s < end && !CancelRequested(); ++s)
                   run.Run(ShardId{static_cast<int32_t>(s)}, found);
                 progress.Add(end - begin);
               });
}

}  // namespace

std::string_view Name(ViolationKind kind) {
  constexpr std::array<std::string_view, 10> kNames{
      "structure",        "wrong-topology", "missing-link", "not-held",      "redundant-delivery",
      "double-reduction", "overwrite",      "link-overlap", "postcondition", "symmetry"};
  return kNames[static_cast<size_t>(kind)];
}

VerifyReport Verify(const Topology& topology, const Collective& collective,
                    const Schedule& schedule, const VerifyOptions& options) {
  VerifyReport report;
  const auto limit = static_cast<size_t>(std::max(options.max_violations, 0));
  if (auto fault = verify::FaultOfWhole(topology, collective, schedule)) {
    report.num_violations = 1;
    if (limit > 0) report.violations.push_back(*std::move(fault));
    return report;
  }
  Findings findings(limit);
  const Problem problem(topology, collective, schedule, findings);
  if (collective.reduces())
    RunShards<ReducingRun>(problem, findings);
  else
    RunShards<HoldingRun>(problem, findings);
  if (problem.timed()) verify::CheckLinkOverlaps(problem, findings);

  report.cancelled = CancelRequested();
  report.deliveries = problem.num_sound();
  report.num_violations = findings.count();
  for (const Finding& finding : findings.Sorted())
    report.violations.push_back(verify::Describe(problem, finding));
  return report;
}

}  // namespace tutti

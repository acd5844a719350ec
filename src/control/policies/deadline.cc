// Locality rings; in a class the job with the earliest deadline is fitted first.
//
// Model       Classes and reserved routes as in `pfa`. Of the jobs that are fitted in one pass the
//             higher class goes first, in it the earlier deadline, each job wholly before the next
//             one; jobs of one class without a deadline go last, by turns as in `ffa`. So what a job
//             gets does not depend on jobs of its class with later deadlines.
// Example     Routes of 100 and 50, jobs 0 and 1 with a flow of 60 each, due at 9 and at 5: job 1 is
//             first and takes route 0 (excess -40 against 10), job 0 takes route 1 (10 against 20).
#include <limits>

#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
namespace {

Status PinByDeadline(const PolicyInput& input, PolicyOutput& output) {
  std::vector<std::pair<int64_t, int64_t>> keys;
  keys.reserve(input.jobs.size());
  for (const PolicyJob& job : input.jobs)
    keys.emplace_back(-int64_t{job.priority},
                      job.deadline_ns == 0 ? std::numeric_limits<int64_t>::max() : job.deadline_ns);
  return PinFlows(input, {.reserved_routes = input.reserved_routes, .stages = StagesBy(keys)},
                  output);
}

}  // namespace

Policy DeadlinePolicy() {
  return {"deadline", "pfa, in a class the job with the earliest deadline first",
          RingOrder::kLocality, PinByDeadline, true};
}

}  // namespace tutti

// Locality rings whose flows are fitted by the weights of their jobs.
//
// Model       A demand is scaled by its job's weight over the mean weight, so that links are filled
//             with as much weight as can be alike, and a job's share of its links, capacity x weight /
//             sum of weights, is near weight / mean weight of a fair one. Heavier jobs are fitted
//             first: what is large fits worst where others are. Reserved routes count as in `pfa`.
// Example     Two routes of 100, jobs 0, 1, 2 of weights 1, 1, 2 with a flow of 60 each: scaled
//             demands 45, 45, 90. Job 2 first, on route 0; then 0 and 1 on route 1 (45 + 45 below
//             90 + 45). Shares 50, 50, 100: as the weights. By turns without weights 2 joins 0.
#include "policies/parts.h"
#include "policies/registry.h"

namespace tutti {
namespace {

Status PinByWeight(const PolicyInput& input, PolicyOutput& output) {
  std::vector<std::pair<int64_t, int64_t>> keys;
  keys.reserve(input.jobs.size());
  for (const PolicyJob& job : input.jobs) keys.emplace_back(-int64_t{job.weight}, 0);
  return PinFlows(
      input, {.reserved_routes = input.reserved_routes, .weighted = true, .stages = StagesBy(keys)},
      output);
}

}  // namespace

Policy WeightedPolicy() {
  return {"weighted", "pfa with demands by the weights of jobs, heavier jobs first",
          RingOrder::kLocality, PinByWeight, true};
}

}  // namespace tutti

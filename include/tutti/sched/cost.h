// Analytic alpha-beta cost of a step schedule, exact.
//
//   time(M) = sum over steps of max over links of (alpha_l + bytes_l / bandwidth_l)
//
// where bytes_l is all that link l carries in the step (one message). A link that carries nothing
// in a step pays no alpha. Reference: [direct-connect] 3.2 "Cost Model".
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/rational.h"
#include "tutti/sched/schedule.h"

namespace tutti {

struct StepCost {
  int32_t tl = 0;    // steps that carry something [TL / alpha]
  Rational tb;       // sum over steps of the busiest link's bytes/bandwidth, in M/B [TB]
  Rational alpha_s;  // sum over steps of the largest alpha of a used link, seconds
};

// `schedule` is a valid step schedule for `topology` (S1 .. S3). O(transfers + steps * links).
StepCost AnalyticCost(const Topology& topology, const Schedule& schedule);

// The formula above for one size, in seconds. On a homogeneous network it is exactly
// alpha_s + tb * M / B.
Rational AnalyticSeconds(const Topology& topology, const Schedule& schedule, int64_t size_bytes);

}  // namespace tutti

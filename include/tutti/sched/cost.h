// Analytic alpha-beta cost of a step schedule, exact.
//
//   time(M) = sum over steps of max over links of (alpha_l + bytes_l / bandwidth_l)
//
// where bytes_l is all that link l carries in the step (one message). A link that carries nothing
// (also: only shards of weight 0) in a step pays no alpha, and a step in which no link carries
// anything costs nothing.
//
// Complexity  O(transfers + links used, summed over steps) additions of integers; exact fractions
//             only once a step and class of links of equal alpha and bandwidth.
// Reference   [direct-connect] 3.2 "Cost Model".
//
// Worked example: figure 1 of [direct-connect], K2,2 with 4 ranks and 2 links out of each: step 1
// sends one shard over each link, step 2 half a shard, so tl = 2, and in units of M/B, with B two
// links and a shard of M/4, tb = (1 + 1/2) * 1/4 * 2 = 3/4 = (N - 1) / N.
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

// `schedule` is a step schedule for `topology` with S1 .. S3.
StepCost AnalyticCost(const Topology& topology, const Schedule& schedule);

// The formula above for one size, in seconds. On a homogeneous network it is exactly
// alpha_s + tb * M / B.
Rational AnalyticSeconds(const Topology& topology, const Schedule& schedule, int64_t size_bytes);

}  // namespace tutti

// Analytic alpha-beta cost of a step schedule, exact.
//
//   time(M) = sum over steps of max over links of (alpha_l + bytes_l / bandwidth_l)
//
// where bytes_l is all that link l carries in the step (one message). A host limit counts like two
// more links, one for all that the rank takes in and one for all that it sends out, with the least
// alpha of its links that way. A link that carries nothing
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

#include <cstddef>
#include <cstdint>
#include <span>
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

// What a schedule is said to take: AnalyticSeconds of a step schedule, and when the last transfer
// of a timed one has arrived, for the size that it was made for.
Rational PredictedSeconds(const Topology& topology, const Schedule& schedule, int64_t size_bytes);

// AnalyticSeconds as a function of the size M: which link a step waits for changes with M, so that
// it is piecewise linear, continuous and convex.
struct CostPiece {
  Rational from_bytes;  // up to the next piece
  Rational fixed_s, seconds_per_byte;

  Rational At(const Rational& bytes) const { return fixed_s + seconds_per_byte * bytes; }
  friend bool operator==(const CostPiece&, const CostPiece&) = default;
};
using CostCurve = std::vector<CostPiece>;  // ascending from 0; never empty

CostCurve AnalyticCurve(const Topology& topology, const Schedule& schedule);
Rational SecondsAt(const CostCurve& curve, const Rational& bytes);  // bytes >= 0

// Which curve is least where, from `from` >= 0 on: exact, and of equal ones the first, unless
// another one is less right behind. Neighbours differ. O(ranges * curves * pieces).
struct LeastRange {
  size_t curve = 0;
  Rational from_bytes;  // up to the next range
};
std::vector<LeastRange> LeastCurves(std::span<const CostCurve> curves, const Rational& from);

}  // namespace tutti

// When tenants may send so that the collectives of a preferred one find the network idle (TS).
//
// Model       From the first and last byte of each of a tenant's collectives: those closer than
//             max(1 ms, 5 % of the period) are one burst [A_j, B_j). Period T: the median of
//             A_{j+1} - A_j. Length L: the 95th percentile of B_j - A_j. Phase: the circular median
//             of A_j - j T. Guard g: the error of the clocks and the 95th percentile of how far
//             bursts begin from their phase. The tenant sends in [phase - g, phase + L + g) modulo
//             T, its victims in [phase + L + g, phase + T - g). The p-th percentile of n values is
//             the ceil(p n / 100)-th smallest, the median the lower one.
// Units       nanoseconds of CLOCK_REALTIME, whole.
// Complexity  O(n^2) for the at most 32 bursts at the end of the trace that count.
// Errors      kInvalidArgument: records that end before they begin or are out of order, an error of
//             clocks below 0. kInfeasible, with the figures: fewer than 3 bursts, periods whose
//             median deviation from T exceeds 5 % of T, a window of the victims below 10 % of T.
// Reference   [mccs] 4.3 example 4; the estimate is ours.
#pragma once

#include <cstdint>
#include <span>

#include "tutti/base/result.h"

namespace tutti {

struct TracedCollective {
  int64_t first_byte_ns = 0, last_byte_ns = 0;
};

struct TrafficWindows {
  int64_t period_ns = 0;  // [T]
  int64_t length_ns = 0;  // [L]
  int64_t phase_ns = 0;   // [phi], in [0, T)
  int64_t guard_ns = 0;   // [g]

  int64_t victims_ns() const { return period_ns - length_ns - 2 * guard_ns; }  // of a period
  // Whether victims may send at a time.
  bool OpenToVictims(int64_t time_ns) const;
};

Result<TrafficWindows> EstimateWindows(std::span<const TracedCollective> trace,
                                       int64_t clock_error_ns);
// For a tenant that is itself held to its windows, so that it keeps its phase and nothing drifts: the period is the 95th
// percentile of A_{j+1} - A_j, which it nearly always is ready within; the phase that of the last burst; the guard the error
// of the clocks alone. Errors as above.
Result<TrafficWindows> EstimateKeptWindows(std::span<const TracedCollective> trace,
                                           int64_t clock_error_ns);

}  // namespace tutti

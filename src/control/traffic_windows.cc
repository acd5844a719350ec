#include "tutti/control/traffic_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace tutti {
namespace {

constexpr int64_t kMinGapNs = 1'000'000;
constexpr size_t kBursts = 32;

int64_t Percentile(std::vector<int64_t> values, size_t percent) {
  std::sort(values.begin(), values.end());
  return values[(values.size() * percent + 99) / 100 - 1];
}
int64_t Median(std::vector<int64_t> values) { return Percentile(std::move(values), 50); }

int64_t Modulo(int64_t value, int64_t period) {
  const int64_t rest = value % period;
  return rest < 0 ? rest + period : rest;
}
// Round the circle, the shorter way.
int64_t Distance(int64_t a, int64_t b, int64_t period) {
  const int64_t ahead = Modulo(a - b, period);
  return std::min(ahead, period - ahead);
}

std::vector<TracedCollective> Bursts(std::span<const TracedCollective> trace, int64_t gap_ns) {
  std::vector<TracedCollective> bursts;
  for (const TracedCollective& one : trace) {
    if (!bursts.empty() && one.first_byte_ns - bursts.back().last_byte_ns < gap_ns)
      bursts.back().last_byte_ns = std::max(bursts.back().last_byte_ns, one.last_byte_ns);
    else
      bursts.push_back(one);
  }
  if (bursts.size() > kBursts) bursts.erase(bursts.begin(), bursts.end() - kBursts);
  return bursts;
}

std::vector<int64_t> Periods(std::span<const TracedCollective> bursts) {
  std::vector<int64_t> periods;
  for (size_t j = 1; j < bursts.size(); ++j)
    periods.push_back(bursts[j].first_byte_ns - bursts[j - 1].first_byte_ns);
  return periods;
}

Status CheckTrace(std::span<const TracedCollective> trace, int64_t clock_error_ns) {
  if (clock_error_ns < 0)
    return InvalidArgument(fmt::format("an error of clocks of {} ns", clock_error_ns));
  for (size_t i = 0; i < trace.size(); ++i) {
    if (trace[i].last_byte_ns < trace[i].first_byte_ns)
      return InvalidArgument(fmt::format("collective {} of the trace ends before it begins", i));
    if (i > 0 && trace[i].first_byte_ns < trace[i - 1].first_byte_ns)
      return InvalidArgument(
          fmt::format("collective {} of the trace begins before the one before it", i));
  }
  return {};
}

// The value that is nearest to all, round the circle; the lowest of several.
int64_t CircularMedian(std::vector<int64_t> values, int64_t period) {
  std::sort(values.begin(), values.end());
  int64_t best = values.front(), best_sum = -1;
  for (const int64_t candidate : values) {
    int64_t sum = 0;
    for (const int64_t value : values) sum += Distance(value, candidate, period);
    if (best_sum >= 0 && sum >= best_sum) continue;
    best = candidate;
    best_sum = sum;
  }
  return best;
}

// What keeps a period.
struct Regular {
  std::vector<TracedCollective> bursts;
  int64_t median_period = 0;
};

Result<Regular> RegularBursts(std::span<const TracedCollective> trace, int64_t clock_error_ns) {
  if (Status status = CheckTrace(trace, clock_error_ns); !status)
    return tl::unexpected(status.error());
  // What joins depends on the period, and the period on what joins. At first nearly the longest
  // time between two beginnings stands for it, since those within a burst are many and short.
  Regular regular{.bursts = Bursts(trace, kMinGapNs)};
  std::vector<TracedCollective>& bursts = regular.bursts;
  if (bursts.size() >= 3)
    bursts = Bursts(trace, std::max(kMinGapNs, Percentile(Periods(bursts), 95) / 20));
  if (bursts.size() >= 3) bursts = Bursts(trace, std::max(kMinGapNs, Median(Periods(bursts)) / 20));
  if (bursts.size() < 3)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("{} bursts in the trace, wanted at least 3", bursts.size()));
  const std::vector<int64_t> periods = Periods(bursts);
  regular.median_period = Median(periods);
  std::vector<int64_t> deviations;
  for (const int64_t one : periods) deviations.push_back(std::abs(one - regular.median_period));
  if (const int64_t deviation = Median(deviations); deviation > regular.median_period / 20)
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("periods of {} ns deviate by {} ns in the median, more than 5 %",
                                 regular.median_period, deviation));
  return regular;
}

int64_t LongBurst(std::span<const TracedCollective> bursts) {
  std::vector<int64_t> lengths;
  for (const TracedCollective& burst : bursts)
    lengths.push_back(burst.last_byte_ns - burst.first_byte_ns);
  return Percentile(lengths, 95);
}

Result<TrafficWindows> LeavingEnough(const TrafficWindows& windows) {
  if (windows.victims_ns() >= (windows.period_ns + 9) / 10) return windows;
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format("of a period of {} ns bursts of {} ns and guards of twice {} ns leave others "
                  "{} ns, less than 10 %",
                  windows.period_ns, windows.length_ns, windows.guard_ns, windows.victims_ns()));
}

}  // namespace

bool TrafficWindows::OpenToVictims(int64_t time_ns) const {
  const int64_t since = Modulo(time_ns - phase_ns, period_ns);
  return since >= length_ns + guard_ns && since < period_ns - guard_ns;
}

Result<TrafficWindows> EstimateWindows(std::span<const TracedCollective> trace,
                                       int64_t clock_error_ns) {
  const Result<Regular> regular = RegularBursts(trace, clock_error_ns);
  if (!regular) return tl::unexpected(regular.error());
  const int64_t period = regular->median_period;
  std::vector<int64_t> phases, misses;
  for (const TracedCollective& burst : regular->bursts)
    phases.push_back(Modulo(burst.first_byte_ns, period));
  TrafficWindows windows{.period_ns = period,
                         .length_ns = LongBurst(regular->bursts),
                         .phase_ns = CircularMedian(phases, period)};
  for (const int64_t phase : phases) misses.push_back(Distance(phase, windows.phase_ns, period));
  windows.guard_ns = clock_error_ns + Percentile(misses, 95);
  return LeavingEnough(windows);
}

Result<TrafficWindows> EstimateKeptWindows(std::span<const TracedCollective> trace,
                                           int64_t clock_error_ns) {
  const Result<Regular> regular = RegularBursts(trace, clock_error_ns);
  if (!regular) return tl::unexpected(regular.error());
  TrafficWindows windows{.period_ns = Percentile(Periods(regular->bursts), 95),
                         .length_ns = LongBurst(regular->bursts)};
  windows.phase_ns = Modulo(regular->bursts.back().first_byte_ns, windows.period_ns);
  windows.guard_ns = clock_error_ns;
  return LeavingEnough(windows);
}

}  // namespace tutti

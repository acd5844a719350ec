#include "tutti/advise/best_by_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>

#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/sched/cost.h"

namespace tutti {
namespace {

constexpr int64_t kLargest = int64_t{1} << 40;

// Times are sums of doubles: a schedule must take less by more than rounding.
constexpr double kRounding = 1e-9;

using TimeAt = std::function<Result<double>(size_t schedule, int64_t size)>;

class Bisection {
 public:
  Bisection(const std::vector<HeldSchedule>& held, const TimeAt& time_at)
      : held_(held), time_at_(time_at) {}

  Result<std::vector<BestRange>> Run() {
    const Result<size_t> first = BestAt(1);
    if (!first) return tl::unexpected(first.error());
    ranges_.push_back({held_[*first].algorithm, 1});
    size_t before = *first;
    for (int64_t size = 2; size <= kLargest; size *= 2) {
      const Result<size_t> best = BestAt(size);
      if (!best) return tl::unexpected(best.error());
      if (const Status split = Split(size / 2, before, size, *best); !split)
        return tl::unexpected(split.error());
      before = *best;
    }
    return std::move(ranges_);
  }

 private:
  Status Split(int64_t low, size_t best_low, int64_t high, size_t best_high) {
    if (held_[best_low].algorithm == held_[best_high].algorithm) return {};
    if (high == low + 1) {
      ranges_.push_back({held_[best_high].algorithm, high});
      return {};
    }
    const int64_t middle = low + (high - low) / 2;
    const Result<size_t> best = BestAt(middle);
    if (!best) return tl::unexpected(best.error());
    if (const Status split = Split(low, best_low, middle, *best); !split) return split;
    return Split(middle, *best, high, best_high);
  }

  Result<size_t> BestAt(int64_t size) const {
    if (CancelRequested()) return tl::unexpected(CancelledError());
    std::optional<size_t> best;
    double least = 0;
    for (size_t k = 0; k < held_.size(); ++k) {
      if (held_[k].from_bytes > size) continue;
      const Result<double> seconds = time_at_(k, size);
      if (!seconds) return tl::unexpected(seconds.error());
      if (best && *seconds >= least * (1 - kRounding)) continue;
      best = k;
      least = *seconds;
    }
    TUTTI_CHECK(best.has_value());
    return *best;
  }

  const std::vector<HeldSchedule>& held_;
  const TimeAt& time_at_;
  std::vector<BestRange> ranges_;
};

Result<double> SimulatedSeconds(const HeldSchedule& held, SimOptions options, int64_t size) {
  options.size_bytes = size;
  return Simulate(*held.topology, held.schedule, options).map([](const SimReport& report) {
    return report.time_s;
  });
}

// For ranges between sizes that need not be whole.
std::vector<BestRange> InWholeBytes(const std::vector<HeldSchedule>& held,
                                    const std::vector<LeastRange>& exact) {
  std::vector<BestRange> ranges;
  for (const LeastRange& range : exact) {
    // At the very size where two are equal the one before still counts.
    const std::optional<int64_t> last = range.from_bytes.Floor().Num64();
    if (!last) break;
    const int64_t from = ranges.empty() ? 1 : *last + 1;
    const std::string& algorithm = held[range.curve].algorithm;
    if (!ranges.empty() && ranges.back().from_bytes == from) ranges.pop_back();
    if (ranges.empty() || ranges.back().algorithm != algorithm)
      ranges.push_back({algorithm, ranges.empty() ? 1 : from});
  }
  return ranges;
}

}  // namespace

Result<std::vector<BestRange>> BestByCost(const std::vector<HeldSchedule>& held) {
  std::vector<CostCurve> curves(held.size());
  bool exact = true;
  for (size_t k = 0; k < held.size(); ++k) {
    if (held[k].schedule.kind == ScheduleKind::kStep)
      curves[k] = AnalyticCurve(*held[k].topology, held[k].schedule);
    else
      exact = false;
    exact = exact && held[k].from_bytes == 1;
  }
  if (exact) return InWholeBytes(held, LeastCurves(curves, 1));
  const TimeAt time_at = [&](size_t k, int64_t size) -> Result<double> {
    if (!curves[k].empty()) return SecondsAt(curves[k], size).ToDouble();
    return SimulatedSeconds(held[k], {.link_model = held[k].schedule.link_model}, size);
  };
  return Bisection(held, time_at).Run();
}

Result<std::vector<BestRange>> BestBySimulation(const std::vector<HeldSchedule>& held,
                                                const SimOptions& options) {
  const TimeAt time_at = [&](size_t k, int64_t size) {
    return SimulatedSeconds(held[k], options, size);
  };
  return Bisection(held, time_at).Run();
}

}  // namespace tutti

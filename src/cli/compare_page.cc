#include "compare_page.h"

#include <algorithm>
#include <optional>

#include "tutti/base/cancel.h"

namespace tutti::cli {
namespace {

// The least time of the algorithm's schedules that are for this size; nullopt: there is none.
Result<std::optional<double>> LeastSeconds(const std::vector<HeldSchedule>& held,
                                           const std::string& algorithm, SimOptions options) {
  std::optional<double> least;
  for (const HeldSchedule& one : held) {
    if (one.algorithm != algorithm || one.from_bytes > options.size_bytes) continue;
    const Result<SimReport> report = Simulate(*one.topology, one.schedule, options);
    if (!report) return tl::unexpected(report.error());
    least = least ? std::min(*least, report->time_s) : report->time_s;
  }
  return least;
}

}  // namespace

Result<std::vector<PageCurve>> CurvesOf(const std::vector<HeldSchedule>& held,
                                        const SimOptions& options,
                                        const std::vector<int64_t>& sizes) {
  std::vector<PageCurve> curves;
  for (const HeldSchedule& one : held) {
    if (std::any_of(curves.begin(), curves.end(),
                    [&](const PageCurve& curve) { return curve.name == one.algorithm; }))
      continue;
    PageCurve curve{one.algorithm, {}, {}};
    for (const int64_t size : sizes) {
      if (CancelRequested()) return tl::unexpected(CancelledError());
      SimOptions at = options;
      at.size_bytes = size;
      const Result<std::optional<double>> seconds = LeastSeconds(held, one.algorithm, at);
      if (!seconds) return tl::unexpected(seconds.error());
      if (!*seconds) continue;
      curve.size_bytes.push_back(size);
      curve.time_s.push_back(**seconds);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<int64_t> SizesToDraw(const std::vector<int64_t>& asked,
                                 const std::vector<BestRange>& best) {
  constexpr int64_t kLeast = int64_t{1} << 10, kMost = int64_t{1} << 30;
  constexpr int64_t kFactor = 4;
  std::vector<int64_t> sizes = asked;
  const int64_t least = std::min(kLeast, *std::min_element(asked.begin(), asked.end()));
  const int64_t most = std::max(kMost, *std::max_element(asked.begin(), asked.end()));
  for (int64_t size = kLeast; size <= most; size *= kFactor) sizes.push_back(size);
  for (const BestRange& range : best)
    if (range.from_bytes > least && range.from_bytes < most) sizes.push_back(range.from_bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

PageCurve BoundCurve(const Bounds& bounds, const std::vector<int64_t>& sizes) {
  PageCurve curve{"bound", sizes, {}};
  for (const int64_t size : sizes) curve.time_s.push_back(bounds.Seconds(size));
  return curve;
}

}  // namespace tutti::cli

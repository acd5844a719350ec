#include "tutti/training/schedule_times.h"

#include <cmath>
#include <utility>

#include "tutti/base/units.h"

namespace tutti {

ScheduleTimes::ScheduleTimes(const Topology& topology, Schedule schedule, const SimOptions& options)
    : topology_(topology), schedule_(std::move(schedule)), options_(options) {}

int64_t ScheduleTimes::ps(int64_t size_bytes) {
  if (fault_) return 0;
  const auto [known, is_new] = ps_of_size_.emplace(size_bytes, 0);
  if (!is_new) return known->second;
  options_.size_bytes = size_bytes;
  const Result<SimReport> report = Simulate(topology_, schedule_, options_);
  if (!report) {
    fault_ = report.error();
    return 0;
  }
  known->second = std::llround(report->time_s * static_cast<double>(kPicosecondsPerSecond));
  return known->second;
}

}  // namespace tutti

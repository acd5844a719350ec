#include "tutti/sched/schedule.h"

#include <limits>
#include <numeric>

#include "tutti/base/check.h"
#include "tutti/base/units.h"

namespace tutti {

void SortBySteps(Schedule& schedule) {
  std::vector<size_t> next(static_cast<size_t>(schedule.num_steps) + 1, 0);
  bool sorted = true;
  int32_t last = 0;
  for (const Transfer& transfer : schedule.transfers) {
    TUTTI_CHECK(0 <= transfer.step && transfer.step < schedule.num_steps);
    ++next[static_cast<size_t>(transfer.step) + 1];
    sorted = sorted && transfer.step >= last;
    last = transfer.step;
  }
  if (sorted) return;
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<Transfer> ordered(schedule.transfers.size());
  for (const Transfer& transfer : schedule.transfers)
    ordered[next[static_cast<size_t>(transfer.step)]++] = transfer;
  schedule.transfers = std::move(ordered);
}

int64_t BandwidthPs(const Rational& bytes, int64_t bandwidth) {
  const Rational exact = bytes * Rational(kPicosecondsPerSecond, bandwidth);
  return exact.Ceil().Num64().value_or(std::numeric_limits<int64_t>::max());
}

}  // namespace tutti

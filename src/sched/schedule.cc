#include "tutti/sched/schedule.h"

#include <limits>
#include <numeric>

#include "tutti/base/check.h"
#include "tutti/base/memory.h"
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
  std::vector<Transfer> ordered;
  ReserveLarge(ordered, schedule.transfers.size());
  ordered.resize(schedule.transfers.size());
  for (const Transfer& transfer : schedule.transfers)
    ordered[next[static_cast<size_t>(transfer.step)]++] = transfer;
  schedule.transfers = std::move(ordered);
}

int64_t BandwidthPs(const Rational& bytes, int64_t bandwidth) {
  const Rational exact = bytes * Rational(kPicosecondsPerSecond, bandwidth);
  return exact.Ceil().Num64().value_or(std::numeric_limits<int64_t>::max());
}

int64_t TransferPs(const Schedule& schedule, const Transfer& transfer, int64_t bandwidth) {
  __extension__ using Wide = unsigned __int128;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const Collective& collective = schedule.collective;
  Wide num = static_cast<Wide>(static_cast<uint64_t>(schedule.size_bytes)) *
             static_cast<uint64_t>(collective.weight(transfer.shard));
  Wide den = static_cast<Wide>(static_cast<uint64_t>(collective.weight_of_size())) *
             static_cast<uint64_t>(schedule.units_per_shard);
  const bool overflow =
      __builtin_mul_overflow(num, static_cast<Wide>(static_cast<uint64_t>(transfer.units())),
                             &num) ||
      __builtin_mul_overflow(num, static_cast<Wide>(kPicosecondsPerSecond), &num) ||
      __builtin_mul_overflow(den, static_cast<Wide>(static_cast<uint64_t>(bandwidth)), &den);
  if (overflow)
    return BandwidthPs(collective.ShardBytes(transfer.shard, schedule.size_bytes) *
                           Rational(transfer.units(), schedule.units_per_shard),
                       bandwidth);
  const Wide quotient = num / den + (num % den != 0 ? 1 : 0);
  return quotient > static_cast<Wide>(kMax) ? kMax : static_cast<int64_t>(quotient);
}

}  // namespace tutti

#include "memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include "tutti/sched/schedule.h"

namespace tutti {

Status CheckMemoryFor(int64_t num_transfers) {
  const double needed = static_cast<double>(num_transfers) * sizeof(Transfer);
  const double present =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed <= present) return {};
  constexpr double kGiB = 1 << 30;
  return MakeError(
      ErrorCode::kResourceExhausted,
      fmt::format("the schedule has at least {} transfers, which need {:.1f} GiB; this "
                  "machine has {:.1f} GiB",
                  num_transfers, needed / kGiB, present / kGiB));
}

}  // namespace tutti

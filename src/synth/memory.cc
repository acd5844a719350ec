#include "memory.h"

#include <fmt/format.h>

#include <limits>

#include "tutti/base/memory.h"
#include "tutti/sched/schedule.h"

namespace tutti {

Status CheckMemoryFor(int64_t num_transfers) {
  int64_t needed = 0;
  if (__builtin_mul_overflow(num_transfers, sizeof(Transfer), &needed))
    needed = std::numeric_limits<int64_t>::max();
  return CheckMemory(fmt::format("the schedule of at least {} transfers", num_transfers), needed,
                     AvailableMemoryBytes());
}

}  // namespace tutti

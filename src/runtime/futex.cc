#include "futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace tutti {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
              std::atomic<uint32_t>::is_always_lock_free);

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns) {
  timespec timeout{};
  timeout.tv_sec = timeout_ns / 1'000'000'000;
  timeout.tv_nsec = timeout_ns % 1'000'000'000;
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeout_ns < 0 ? nullptr : &timeout, nullptr, 0);
}

void FutexWakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace tutti

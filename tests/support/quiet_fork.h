// fork() for tests whose process has threads.
//
// The address sanitizer's allocator is not made ready for fork: where another thread is in it, the child has its lock held for
// ever and hangs in its first allocation. A thread that sleeps in poll() is not in it.
#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include "support/sanitizers.h"

namespace tutti::test_support {

inline bool OtherThreadsSleep() {
  const std::string own = std::to_string(gettid());
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    if (task.path().filename() == own) continue;
    std::ifstream file(task.path() / "stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    // "number (name) state ...": the name may have anything in it.
    const size_t end_of_name = text.rfind(')');
    if (end_of_name != std::string::npos && text.compare(end_of_name + 2, 1, "S") != 0)
      return false;
  }
  return true;
}

// With the address sanitizer: once all other threads sleep, within a second.
inline pid_t QuietFork() {
  constexpr int kMostLooks = 1000;
  for (int look = 0; kHasAddressSanitizer && look < kMostLooks && !OtherThreadsSleep(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return fork();
}

}  // namespace tutti::test_support

// What of Tutti lies in shared memory, for tests that nothing of theirs stays there.
#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <thread>

namespace tutti {

// Names in /dev/shm that say whose they are: what else lies there is of other programs, and the memory of CUDA devices that
// tests play is of tests that run beside this one.
inline std::set<std::string> SharedMemoryNames() {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none)) {
    const std::string name = entry.path().filename();
    if (name.find("tutti") != std::string::npos && name.find("fake-cuda") == std::string::npos)
      names.insert(name);
  }
  return names;
}

// What has come since then and stays. What runs beside the test may have made some of it, which goes.
inline std::set<std::string> LeftInSharedMemory(const std::set<std::string>& before) {
  constexpr int kLooks = 50;
  constexpr std::chrono::milliseconds kBetween{100};
  std::set<std::string> left;
  for (const std::string& name : SharedMemoryNames())
    if (before.count(name) == 0) left.insert(name);
  for (int look = 0; look < kLooks && !left.empty(); ++look) {
    const std::set<std::string> now = SharedMemoryNames();
    std::erase_if(left, [&now](const std::string& name) { return now.count(name) == 0; });
    if (!left.empty()) std::this_thread::sleep_for(kBetween);
  }
  return left;
}

}  // namespace tutti

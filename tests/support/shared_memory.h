// What of Tutti lies in shared memory, for tests that nothing of theirs stays there.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <system_error>

namespace tutti {

// Names in /dev/shm that say whose they are: what else lies there is of programs that run beside this one.
inline std::set<std::string> SharedMemoryNames() {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none)) {
    const std::string name = entry.path().filename();
    if (name.find("tutti") != std::string::npos) names.insert(name);
  }
  return names;
}

}  // namespace tutti

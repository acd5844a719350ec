// What an operator's program asks: whatever it is, the answer is JSON, and the daemon lives.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tutti/service/daemon.h"

namespace {

struct Asked {
  std::string folder =
      (std::filesystem::temp_directory_path() / ("tutti-admin-fuzz-" + std::to_string(getpid())))
          .string();
  tutti::service::Daemon daemon;
  std::thread thread;

  Asked() : daemon(Start()), thread([this] { daemon.Run(); }) {}
  ~Asked() {
    daemon.Stop();
    thread.join();
    std::filesystem::remove_all(folder);
  }
  tutti::service::Daemon Start() const {
    auto started = tutti::service::Daemon::Start({.socket = folder + "/s",
                                                  .admin = folder + "/a",
                                                  .listen = "127.0.0.1",
                                                  .tenants = {{.name = "blue", .token = "b"}}});
    if (!started) std::abort();
    return std::move(*started);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Asked asked;
  std::string request(reinterpret_cast<const char*>(data), size);
  std::replace(request.begin(), request.end(), '\n', ' ');
  const auto answer = tutti::service::AskDaemon(asked.folder + "/a", request);
  if (!answer || nlohmann::json::parse(*answer, nullptr, false).is_discarded()) std::abort();
  return 0;
}

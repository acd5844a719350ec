// A daemon of the service that works where somebody waits for it: in the thread of a fuzzer or bench, so that it takes no longer
// than what it asks for.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "core.h"
#include "support/raw_tenant.h"
#include "tutti/service/daemon.h"
#include "unit/service/prompt_worker.h"

namespace tutti::test_support {

class ServedDaemon {
 public:
  explicit ServedDaemon(const std::string& name)
      : folder_((std::filesystem::temp_directory_path() / (name + "-" + std::to_string(getpid())))
                    .string()) {
    auto started = service::Daemon::Core::Start(
        {.socket = folder_ + "/s", .admin = folder_ + "/a", .listen = "127.0.0.1"},
        {.planner = std::make_unique<service::PromptWorker>()});
    if (!started) std::abort();
    daemon_ = std::move(*started);
  }
  ~ServedDaemon() {
    daemon_.reset();
    std::filesystem::remove_all(folder_);
  }
  ServedDaemon(const ServedDaemon&) = delete;
  ServedDaemon& operator=(const ServedDaemon&) = delete;

  // Of commands that are there, without a look at its sockets.
  void Round() const { daemon_->Round(); }
  // What never ends is left to the next time.
  void Work() const {
    constexpr int kMostRounds = 64;
    for (int round = 0; round < kMostRounds && daemon_->RunOnce(); ++round) {
    }
  }
  RawTenant Come() const {
    return RawTenant(folder_ + "/s", "", [this] { Work(); });
  }

 private:
  std::string folder_;
  std::unique_ptr<service::Daemon::Core> daemon_;
};

}  // namespace tutti::test_support

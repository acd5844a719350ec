#include "mccs/local_daemons.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace tutti::mccs {

Result<LocalDaemons> LocalDaemons::Start(int32_t number) {
  LocalDaemons daemons;
  daemons.folder_ =
      (std::filesystem::temp_directory_path() / fmt::format("tutti-daemons-{}", getpid())).string();
  for (int32_t host = 0; host < number; ++host) {
    Running running{.socket = fmt::format("{}/{}.sock", daemons.folder_, host),
                    .admin = fmt::format("{}/{}.admin", daemons.folder_, host),
                    .daemon = nullptr,
                    .thread = {}};
    Result<service::Daemon> started = service::Daemon::Start({.socket = running.socket,
                                                              .admin = running.admin,
                                                              .listen = "127.0.0.1",
                                                              .host = fmt::format("H{}", host)});
    if (!started) return tl::unexpected(started.error());
    running.daemon = std::make_unique<service::Daemon>(std::move(*started));
    running.thread = std::thread([daemon = running.daemon.get()] { daemon->Run(); });
    daemons.running_.push_back(std::move(running));
  }
  return daemons;
}

LocalDaemons::~LocalDaemons() {
  for (Running& running : running_) {
    running.daemon->Stop();
    running.thread.join();
  }
  running_.clear();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace tutti::mccs

// A daemon in the test's process, and ranks under it: what tests of the daemon share.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tutti/communicator.h"
#include "tutti/service/daemon.h"

namespace tutti::service {

// A daemon in a thread of the test, as one host would have it.
class RunningDaemon {
 public:
  explicit RunningDaemon(const std::string& name, std::vector<TenantOptions> tenants = {},
                         bool anybody = true,
                         const std::function<void(DaemonOptions&)>& change = {}) {
    folder_ = (std::filesystem::temp_directory_path() /
               ("tutti-" + std::to_string(getpid()) + "-" + name))
                  .string();
    options_.socket = folder_ + "/tuttid.sock";
    options_.admin = folder_ + "/admin.sock";
    options_.listen = "127.0.0.1";
    options_.host = name;
    options_.tenants = std::move(tenants);
    options_.anybody = anybody;
    if (change) change(options_);
    Result<Daemon> started = Daemon::Start(options_);
    if (!started) ADD_FAILURE() << started.error().message;
    daemon_.emplace(std::move(*started));
    thread_ = std::thread([this] { daemon_->Run(); });
  }
  ~RunningDaemon() {
    End();
    std::filesystem::remove_all(folder_);
  }
  void End() {
    if (!thread_.joinable()) return;
    daemon_->Stop();
    thread_.join();
    daemon_.reset();
  }

  const std::string& socket() const { return options_.socket; }
  const std::string& folder() const { return folder_; }
  nlohmann::json Ask(const nlohmann::json& request) const {
    const Result<std::string> answer = AskDaemon(options_.admin, request.dump());
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? nlohmann::json::parse(*answer) : nlohmann::json();
  }
  nlohmann::json Ask(const char* command) const {
    return Ask(nlohmann::json{{"command", command}});
  }

 private:
  std::string folder_;
  DaemonOptions options_;
  std::optional<Daemon> daemon_;
  std::thread thread_;
};

using RankBody = std::function<void(Communicator&)>;

// Rank r belongs to daemons[r % daemons]; each rank is a thread.
inline void RunRanks(const std::vector<const RunningDaemon*>& daemons, int32_t num_ranks,
                     const RankBody& body, double timeout_s = 60) {
  const Result<UniqueId> id = MakeUniqueId(daemons.front()->socket());
  ASSERT_TRUE(id) << id.error().message;
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < num_ranks; ++rank)
    threads.emplace_back([&, rank] {
      const RunningDaemon& daemon = *daemons[static_cast<size_t>(rank) % daemons.size()];
      Result<Communicator> joined = Communicator::Join(
          *id, num_ranks, rank, {.timeout_s = timeout_s, .service = daemon.socket()});
      ASSERT_TRUE(joined) << joined.error().message;
      body(*joined);
    });
  for (std::thread& thread : threads) thread.join();
}

inline void Until(const std::function<bool()>& holds) {
  for (int look = 0; look < 6000 && !holds(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(holds());
}

inline std::vector<float> Ramp(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace tutti::service

// Questions on their way to daemons that have attached.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "rpc.h"

namespace tutti::rpc {

class AttachedDaemons::State {
 public:
  // Writes a question to the daemon; false: it has gone.
  using Send = std::function<bool(uint64_t question, const std::string& request)>;

  // The number of this attachment. A later one of the same host takes its place.
  uint64_t Attach(const std::string& host, Send send);
  void Detach(const std::string& host, uint64_t attachment);
  void Answer(uint64_t attachment, uint64_t question, Result<std::string> answer);
  Result<std::string> Ask(const std::string& host, const std::string& request);

 private:
  struct Daemon {
    uint64_t attachment = 0;
    std::shared_ptr<Send> send;
  };
  struct Question {
    uint64_t attachment = 0;
    std::optional<Result<std::string>> answer;
  };

  std::mutex mutex_;
  std::condition_variable answered_;
  std::map<std::string, Daemon> daemons_;
  std::map<uint64_t, Question> questions_;  // those that somebody waits for
  uint64_t attachments_ = 0, asked_ = 0;
};

}  // namespace tutti::rpc

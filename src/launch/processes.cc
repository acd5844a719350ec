#include "tutti/launch/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/process.h"

namespace tutti {

std::vector<std::string> LaunchWords(std::string_view command, const std::string& host) {
  constexpr std::string_view kHost = "{host}", kBlanks = " \t";
  std::vector<std::string> words;
  bool named = false;
  while (true) {
    const size_t begin = command.find_first_not_of(kBlanks);
    if (begin == command.npos) break;
    const size_t end = std::min(command.find_first_of(kBlanks, begin), command.size());
    std::string word(command.substr(begin, end - begin));
    for (size_t at = 0; (at = word.find(kHost, at)) != word.npos; at += host.size()) {
      word.replace(at, kHost.size(), host);
      named = true;
    }
    words.push_back(std::move(word));
    command.remove_prefix(end);
  }
  if (!named) words.push_back(host);
  return words;
}

HostProcesses::~HostProcesses() {
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void HostProcesses::Start(const std::string& host, std::vector<std::string> words,
                          std::string input) {
  {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  threads_.emplace_back([this, host, words = std::move(words), input = std::move(input)] {
    std::string last_line;
    const auto on_line = [&](std::string_view line, ProcessStream) {
      const std::lock_guard lock(mutex_);
      last_line = line;
      on_line_(host, line);
    };
    const Result<ProcessEnd> end = RunProcess(words, on_line, {.input = input});
    const std::lock_guard lock(mutex_);
    if (!end && health_) health_ = Within("host " + host, end.error());
    if (end && !end->ok() && health_) {
      was_killed_ = end->signal != 0;
      health_ = MakeError(ErrorCode::kPeerFailed,
                          fmt::format("host {}: '{}' ended with {}{}", host, words.front(),
                                      end->ToText(), last_line.empty() ? "" : ": " + last_line));
    }
    --running_;
    ended_.notify_all();
  });
}

bool HostProcesses::was_killed() const {
  const std::lock_guard lock(mutex_);
  return was_killed_;
}

Status HostProcesses::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

void HostProcesses::Wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return running_ == 0; });
}

void HostProcesses::Finish(double patience_s) {
  std::unique_lock lock(mutex_);
  const auto all_ended = [this] { return running_ == 0; };
  if (!ended_.wait_for(lock, std::chrono::duration<double>(patience_s), all_ended)) {
    const bool cancelled = CancelRequested();
    RequestCancel();  // RunProcess ends its program then
    ended_.wait(lock, all_ended);
    if (!cancelled) ResetCancel();
  }
}

}  // namespace tutti

// Processes that were started on hosts, directly or by a command such as ssh, and watched.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tutti/base/result.h"

namespace tutti {

// The words of a launch command: {host} stands for the host and is the last word where it does not stand
// anywhere. "ssh -p 2222 {host}" to {"ssh", "-p", "2222", "h0"}.
std::vector<std::string> LaunchWords(std::string_view command, const std::string& host);

class HostProcesses {
 public:
  // `on_line` gets what a process prints; one call at a time, from any thread.
  using OnLine = std::function<void(const std::string& host, std::string_view line)>;
  explicit HostProcesses(OnLine on_line) : on_line_(std::move(on_line)) {}
  HostProcesses(const HostProcesses&) = delete;
  HostProcesses& operator=(const HostProcesses&) = delete;
  ~HostProcesses();  // waits for them

  // `input`: its standard input, which no other process can see.
  void Start(const std::string& host, std::vector<std::string> words, std::string input);
  // An error: a process could not be started, or has failed; names its host.
  Status health() const;
  // It had no say: a signal ended the process that health() names.
  bool was_killed() const;
  void Wait();
  // Waits for them to end, and ends those that have not after `patience_s`.
  void Finish(double patience_s);

 private:
  OnLine on_line_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  size_t running_ = 0;
  Status health_;
  bool was_killed_ = false;
  std::deque<std::thread> threads_;
};

}  // namespace tutti

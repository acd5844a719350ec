// What the streams and events of tutti.h are on the host.
//
// Model       A stream is a thread that runs tasks in the order in which they came. An event counts how
//             often it was recorded and how often that was reached.
// Threads     Any may call; tasks run in the stream's thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace tutti {

class HostStream {
 public:
  HostStream() : thread_([this] { Run(); }) {}
  ~HostStream() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  void Add(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
  }
  // All tasks that were there when it was called are done.
  void Synchronize() {
    std::unique_lock lock(mutex_);
    const uint64_t last = done_ + tasks_.size();
    changed_.wait(lock, [this, last] { return done_ >= last; });
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      // It stays in the list while it runs, so that who waits for all waits for it.
      const std::function<void()>& task = tasks_.front();
      lock.unlock();
      task();
      lock.lock();
      tasks_.pop_front();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  uint64_t done_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

class HostEvent {
 public:
  // The number of this record, for Reach() and Wait().
  uint64_t Record() {
    const std::lock_guard lock(mutex_);
    return ++recorded_;
  }
  void Reach(uint64_t record) {
    {
      const std::lock_guard lock(mutex_);
      reached_ = record > reached_ ? record : reached_;
    }
    changed_.notify_all();
  }
  // Position of the last record; an event never recorded is reached.
  uint64_t last() const {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }
  bool IsReached() const {
    const std::lock_guard lock(mutex_);
    return reached_ >= recorded_;
  }
  void Wait(uint64_t record) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, record] { return reached_ >= record; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t recorded_ = 0, reached_ = 0;
};

}  // namespace tutti

// MemoryReturns: gives large memory back to the system in a thread beside the daemon's, since that takes a second for a
// few GiB, which no other tenant shall wait for.
//
// Model       What is taken counts as its tenant's until it is given back.
// Threads     Take: any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace tutti::service {

class MemoryReturns {
 public:
  // From which size on it is worth a hand-over.
  static constexpr int64_t kLargeBytes = int64_t{1} << 20;

  MemoryReturns() : thread_([this] { Run(); }) {}
  // All is given back.
  ~MemoryReturns() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  MemoryReturns(const MemoryReturns&) = delete;
  MemoryReturns& operator=(const MemoryReturns&) = delete;

  // `memory` is what ends when nobody holds it any more. `counted`, which outlives this, has `bytes` less when it is done.
  void Take(std::shared_ptr<void> memory, std::atomic<int64_t>& counted, int64_t bytes) {
    if (bytes < kLargeBytes) {
      memory.reset();
      counted -= bytes;
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back({std::move(memory), &counted, bytes});
    }
    changed_.notify_all();
  }

 private:
  struct Waiting {
    std::shared_ptr<void> memory;
    std::atomic<int64_t>* counted = nullptr;
    int64_t bytes = 0;
  };

  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      next.memory.reset();
      *next.counted -= next.bytes;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tutti::service

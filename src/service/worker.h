// Worker: what takes long in a thread beside the daemon's, so that no tenant waits for another one's. One of them plans
// (schedules made, judged, lowered; memory made); each CUDA device has one for its copies.
//
// Model       A job runs in the worker's thread, one after the other, and gives what is to be done in the
//             daemon's thread: RunFinished() does that. In simulated time another one stands in its place.
// Threads     Add and RunFinished: the daemon's.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tutti::service {

class Worker {
 public:
  using Finish = std::function<void()>;
  using Job = std::function<Finish()>;

  virtual ~Worker() = default;
  virtual void Add(Job job) = 0;
  // True: something was finished.
  virtual bool RunFinished() = 0;
};

class ThreadWorker final : public Worker {
 public:
  // `wake` is called in the worker's thread when a job is done.
  explicit ThreadWorker(std::function<void()> wake);
  ~ThreadWorker() override;  // waits for the job that runs; others are dropped
  ThreadWorker(const ThreadWorker&) = delete;
  ThreadWorker& operator=(const ThreadWorker&) = delete;

  void Add(Job job) override;
  bool RunFinished() override;

 private:
  void Run();

  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::deque<Finish> finished_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tutti::service

#include "worker.h"

#include <utility>

namespace tutti::service {

ThreadWorker::ThreadWorker(std::function<void()> wake)
    : wake_(std::move(wake)), thread_([this] { Run(); }) {}

ThreadWorker::~ThreadWorker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ThreadWorker::Add(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

bool ThreadWorker::RunFinished() {
  std::deque<Finish> finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
  for (const Finish& finish : finished) finish();
  return !finished.empty();
}

void ThreadWorker::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (ends_) return;
    Finish finish;
    {
      // What it holds is given back before anybody hears that it is done, but for what Finish holds.
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      finish = job();
    }
    lock.lock();
    finished_.push_back(std::move(finish));
    wake_();
  }
}

}  // namespace tutti::service

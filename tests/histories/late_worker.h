// LateWorker: the planner of a daemon in simulated time, without a thread.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "simulated_kernel.h"
#include "worker.h"

namespace tutti::histories {

// Plans are made at once, and heard of after a while.
class LateWorker final : public service::Worker {
 public:
  LateWorker(SimulatedKernel& kernel, std::function<void()> wake)
      : kernel_(kernel), wake_(std::move(wake)) {}
  ~LateWorker() override { shared_->alive = false; }

  void Add(Job job) override {
    constexpr uint64_t kMostNs = 10 * kMs;
    Finish finish = job();
    ready_ns_ = std::max(ready_ns_, kernel_.now_ns()) +
                static_cast<int64_t>(kernel_.random().Below(kMostNs));
    kernel_.At(ready_ns_, [this, shared = shared_, finish = std::move(finish)] {
      if (!shared->alive) return;
      shared->finished.push_back(finish);
      wake_();
    });
  }
  bool RunFinished() override {
    const std::deque<Finish> finished = std::exchange(shared_->finished, {});
    for (const Finish& finish : finished) finish();
    return !finished.empty();
  }

 private:
  struct Shared {
    bool alive = true;
    std::deque<Finish> finished;
  };
  SimulatedKernel& kernel_;
  std::function<void()> wake_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  int64_t ready_ns_ = 0;
};

}  // namespace tutti::histories

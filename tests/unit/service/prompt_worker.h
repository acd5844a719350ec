// PromptWorker: a worker without a thread. Jobs run where they are asked for, so that what they ask the system for counts as
// asked for there, and are heard of in the next round.
#pragma once

#include <deque>
#include <utility>

#include "worker.h"

namespace tutti::service {

class PromptWorker final : public Worker {
 public:
  void Add(Job job) override { finished_.push_back(job()); }
  bool RunFinished() override {
    const std::deque<Finish> finished = std::exchange(finished_, {});
    for (const Finish& finish : finished) finish();
    return !finished.empty();
  }

 private:
  std::deque<Finish> finished_;
};

}  // namespace tutti::service

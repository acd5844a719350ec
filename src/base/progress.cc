#include "tutti/base/progress.h"

#include <algorithm>
#include <mutex>
#include <thread>

namespace tutti {
namespace {

std::mutex mutex;                    // of what follows
ProgressScope* innermost = nullptr;  // all of one thread
std::thread::id owner;

}  // namespace

ProgressScope::ProgressScope(const char* task, int64_t total) : task_(task), total_(total) {
  const std::lock_guard lock(mutex);
  const std::thread::id here = std::this_thread::get_id();
  shown_ = innermost == nullptr || owner == here;
  if (!shown_) return;
  owner = here;
  outer_ = innermost;
  innermost = this;
}

ProgressScope::~ProgressScope() {
  if (!shown_) return;
  const std::lock_guard lock(mutex);
  innermost = outer_;
}

ProgressSnapshot CurrentProgress() {
  const std::lock_guard lock(mutex);
  double part = 0;
  for (ProgressScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (scope->total_ > 0)
      part = std::clamp((static_cast<double>(scope->done_.load(std::memory_order_relaxed)) + part) /
                            static_cast<double>(scope->total_),
                        0.0, 1.0);
    if (scope->outer_ != nullptr) continue;
    scope->most_ = std::max(scope->most_, part);
    return {scope->task_, scope->most_};
  }
  return {};
}

}  // namespace tutti

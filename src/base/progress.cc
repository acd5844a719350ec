#include "tutti/base/progress.h"

#include <atomic>

namespace tutti {
namespace {

std::atomic<const char*> current_task{nullptr};
std::atomic<int64_t> current_done{0}, current_total{0};

}  // namespace

ProgressScope::ProgressScope(const char* task, int64_t total)
    : outer_task_(current_task.load()),
      outer_done_(current_done.load()),
      outer_total_(current_total.load()) {
  current_done = 0;
  current_total = total;
  current_task = task;
}

ProgressScope::~ProgressScope() {
  current_task = outer_task_;
  current_done = outer_done_;
  current_total = outer_total_;
}

void ProgressScope::Add(int64_t done) { current_done.fetch_add(done, std::memory_order_relaxed); }

ProgressSnapshot CurrentProgress() {
  return {current_task.load(), current_done.load(), current_total.load()};
}

}  // namespace tutti

// How far long work is. Loops report here; the command line shows it on a terminal.
//
//   ProgressScope progress("bfb", num_ranks);
//   ... progress.Add(1);   // any thread, cheap
#pragma once

#include <cstdint>

namespace tutti {

// One task at a time is shown: an inner scope hides the outer one until it ends.
class ProgressScope {
 public:
  // `task` must outlive the process (a literal).
  ProgressScope(const char* task, int64_t total);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

  void Add(int64_t done);

 private:
  const char* outer_task_;
  int64_t outer_done_, outer_total_;
};

struct ProgressSnapshot {
  const char* task = nullptr;  // nullptr: nothing to show
  int64_t done = 0, total = 0;
};
ProgressSnapshot CurrentProgress();

}  // namespace tutti

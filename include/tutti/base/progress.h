// How far long work is. Loops report here; the command line shows it on a terminal.
//
//   ProgressScope progress("bfb", num_ranks);
//   ... progress.Add(1);   // any thread, cheap
//
// Scopes nest: what an inner one has done counts as part of the unit that the one around it is at.
// Scopes that are opened while another thread has one open, as in parallel loops, are not shown.
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>
#include <utility>

namespace tutti {

class ProgressScope {
 public:
  // `task` must outlive the process (a literal). Ends on the thread on which it began.
  ProgressScope(const char* task, int64_t total);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

  void Add(int64_t done) { done_.fetch_add(done, std::memory_order_relaxed); }

 private:
  friend struct ProgressSnapshot CurrentProgress();

  const char* task_;
  int64_t total_;
  std::atomic<int64_t> done_{0};
  bool shown_ = false;
  ProgressScope* outer_ = nullptr;  // around this one
  double most_ = 0;                 // of the outermost: what was told
};

// A loop over a sized range, which outlives it, as a scope: each step counts, however its body ends.
//
//   for (const Case& one : WithProgress("networks", kCases)) ...
template <class Range>
class WithProgress {
  using Inner = decltype(std::begin(std::declval<const Range&>()));

 public:
  class Iterator {
   public:
    Iterator(Inner inner, ProgressScope* progress) : inner_(inner), progress_(progress) {}
    decltype(auto) operator*() const { return *inner_; }
    Iterator& operator++() {
      ++inner_;
      progress_->Add(1);
      return *this;
    }
    bool operator!=(const Iterator& other) const { return inner_ != other.inner_; }

   private:
    Inner inner_;
    ProgressScope* progress_;
  };

  WithProgress(const char* task, const Range& range)
      : range_(range), progress_(task, static_cast<int64_t>(std::size(range))) {}
  Iterator begin() { return {std::begin(range_), &progress_}; }
  Iterator end() { return {std::end(range_), &progress_}; }

 private:
  const Range& range_;
  ProgressScope progress_;
};

struct ProgressSnapshot {
  const char* task = nullptr;  // of the outermost scope; nullptr: nothing to show
  double part = 0;             // done, 0 .. 1: never less than what was told of this scope before
};
ProgressSnapshot CurrentProgress();

}  // namespace tutti

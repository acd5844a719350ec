// Findings: violations as plain numbers, counted all and kept up to a limit, so that a schedule
// with millions of faults costs neither memory nor text. Words are made in messages.h, for the few
// that are reported.
//
// Invariants  What is kept are the first `limit` in the order of Finding::operator<, whatever the
//             order of Add and Merge: the result never depends on threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <tuple>
#include <vector>

#include "tutti/base/parallel.h"
#include "tutti/verify/verifier.h"

namespace tutti::verify {

inline constexpr int64_t kBeforeStart = -1;
inline constexpr int64_t kAtTheEnd = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kFarFuture = kAtTheEnd - 1;  // what is later than the clock can tell

struct Finding {
  ViolationKind kind{};
  int64_t time = kBeforeStart;  // on the clock of problem.h
  int64_t transfer = -1;        // -1: none
  ShardId shard{0};             // where it holds: shard, node and the units [begin, end)
  NodeId node{0};
  int32_t begin = 0, end = 0;
  int64_t other = -1;        // the transfer it collides with, where known
  int32_t contributor = -1;  // the rank that would count twice, be lost or is lacking
  int32_t lacking = 0;       // how many are lacking
  LinkId link{-1};           // of the transfer, where that is not at hand later

  friend bool operator<(const Finding& a, const Finding& b) { return a.Key() < b.Key(); }

 private:
  std::tuple<int64_t, int64_t, ViolationKind, ShardId, NodeId, int32_t> Key() const {
    return {time, transfer, kind, shard, node, begin};
  }
};

class Findings {
 public:
  explicit Findings(size_t limit) : limit_(limit) {}

  void Add(const Finding& finding) {
    ++count_;
    if (limit_ == 0) return;
    kept_.push_back(finding);
    if (kept_.size() >= 2 * limit_ + 64) Shrink();
  }
  void Merge(const Findings& other) {
    count_ += other.count_;
    kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
    Shrink();
  }
  int64_t count() const { return count_; }
  size_t limit() const { return limit_; }
  std::vector<Finding> Sorted() const {
    std::vector<Finding> sorted = kept_;
    std::sort(sorted.begin(), sorted.end());
    sorted.resize(std::min(sorted.size(), limit_));
    return sorted;
  }

 private:
  void Shrink() {
    if (kept_.size() <= limit_) return;
    std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(limit_),
                     kept_.end());
    kept_.resize(limit_);
  }

  size_t limit_;
  int64_t count_ = 0;
  std::vector<Finding> kept_;
};

// body(begin, end, found) on disjoint blocks that cover [0, count), as ParallelFor; what each finds goes to `findings`.
template <class Body>
void FindInBlocks(Findings& findings, int64_t count, int64_t grain, const Body& body) {
  std::mutex mutex;
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    Findings found(findings.limit());
    body(begin, end, found);
    const std::lock_guard lock(mutex);
    findings.Merge(found);
  });
}

}  // namespace tutti::verify

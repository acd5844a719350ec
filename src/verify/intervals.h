// The elementary intervals of a shard: what lies between neighbouring chunk ends. All units of one
// interval share their fate, so the state is kept per interval and nothing is lost.
//
// Complexity  Assign(): O(ends + k log k) for k distinct ends; IndexOf() O(1), or O(log k) above
//             kTableLimit units a shard. The table is reused from shard to shard.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "problem.h"

namespace tutti::verify {

class Intervals {
 public:
  explicit Intervals(int32_t units_per_shard) : units_(units_per_shard) {
    if (units_ <= kTableLimit) index_of_.assign(static_cast<size_t>(units_) + 1, kNone);
  }

  // `transfer_at(i)`: the i-th of `count`.
  template <class TransferAt>
  void Assign(size_t count, const TransferAt& transfer_at) {
    Clear();
    Mark(0);
    Mark(units_);
    for (size_t i = 0; i < count; ++i) {
      Mark(transfer_at(i).begin);
      Mark(transfer_at(i).end);
    }
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
    if (!index_of_.empty())
      for (size_t i = 0; i < bounds_.size(); ++i)
        index_of_[static_cast<size_t>(bounds_[i])] = static_cast<int32_t>(i);
  }

  size_t count() const { return bounds_.size() - 1; }
  int32_t begin(size_t interval) const { return bounds_[interval]; }
  int32_t end(size_t interval) const { return bounds_[interval + 1]; }
  // The interval that begins at a chunk end, count() for the end of the shard.
  size_t IndexOf(int32_t bound) const {
    if (!index_of_.empty()) return static_cast<size_t>(index_of_[static_cast<size_t>(bound)]);
    return static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), bound) -
                               bounds_.begin());
  }

 private:
  static constexpr int32_t kTableLimit = 1 << 20;
  static constexpr int32_t kNone = -1, kMarked = -2;

  void Clear() {
    if (!index_of_.empty())
      for (int32_t bound : bounds_) index_of_[static_cast<size_t>(bound)] = kNone;
    bounds_.clear();
  }
  void Mark(int32_t bound) {
    if (!index_of_.empty()) {
      int32_t& mark = index_of_[static_cast<size_t>(bound)];
      if (mark == kMarked) return;
      mark = kMarked;
    }
    bounds_.push_back(bound);
  }

  int32_t units_;
  std::vector<int32_t> bounds_, index_of_;
};

}  // namespace tutti::verify

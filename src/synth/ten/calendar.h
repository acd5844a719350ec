// When one link is busy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tutti::ten {

// Intervals that do not touch, in order. Times may be negative.
class Calendar {
 public:
  // The first time from `earliest` on at which the link is free for `length`.
  int64_t FirstFree(int64_t earliest, int64_t length) const {
    if (busy_.empty() || busy_.back().end <= earliest) return earliest;
    auto busy = std::upper_bound(
        busy_.begin(), busy_.end(), earliest,
        [](int64_t time, const Interval& interval) { return time < interval.end; });
    for (; busy != busy_.end() && busy->begin < earliest + length; ++busy) earliest = busy->end;
    return earliest;
  }

  // `begin` is a time at which it is free.
  void Take(int64_t begin, int64_t length) {
    int64_t end = begin + length;
    const auto first = std::lower_bound(
        busy_.begin(), busy_.end(), begin,
        [](const Interval& interval, int64_t time) { return interval.end < time; });
    auto last = first;
    for (; last != busy_.end() && last->begin <= end; ++last) {
      begin = std::min(begin, last->begin);
      end = std::max(end, last->end);
    }
    if (first == last) {
      busy_.insert(first, {begin, end});
      return;
    }
    *first = {begin, end};
    busy_.erase(first + 1, last);
  }

 private:
  struct Interval {
    int64_t begin, end;
  };
  std::vector<Interval> busy_;
};

}  // namespace tutti::ten

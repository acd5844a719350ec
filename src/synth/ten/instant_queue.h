// A queue of events for simulations, which never look back: a radix heap.
//
// Model       Events have a time; they come out instant by instant, all of one time together and in
//             no order among themselves. None may be pushed before the instant last taken out.
// Complexity  Push and take are O(1) each but for moves: an event moves at most once for each bit
//             in which its time differs from the instant at which it was pushed.
// Reference   Ahuja, Mehlhorn, Orlin, Tarjan: Faster algorithms for the shortest path problem, JACM
//             37 (1990).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tutti/base/check.h"

namespace tutti::ten {

// Event has an int64_t `time` >= 0.
template <class Event>
class InstantQueue {
 public:
  bool empty() const { return size_ == 0; }

  void Push(const Event& event) {
    TUTTI_DCHECK(event.time >= now_);
    BucketOf(event.time).push_back(event);
    ++size_;
  }

  // What happens next, all at one time. It stays valid until the next call.
  const std::vector<Event>& Take() {
    TUTTI_DCHECK(!empty());
    taken_.clear();
    size_t at = 0;
    while (buckets_[at].empty()) ++at;
    if (at > 0) {
      const auto earlier = [](const Event& a, const Event& b) { return a.time < b.time; };
      std::vector<Event>& bucket = buckets_[at];
      now_ = std::min_element(bucket.begin(), bucket.end(), earlier)->time;
      for (const Event& event : bucket) BucketOf(event.time).push_back(event);
      bucket.clear();
    }
    taken_.swap(buckets_[0]);
    size_ -= taken_.size();
    return taken_;
  }

 private:
  static constexpr size_t kBits = 64;

  // Events of bucket b > 0 differ from `now` in bit b - 1 and in none above.
  std::vector<Event>& BucketOf(int64_t time) {
    return buckets_[std::bit_width(static_cast<uint64_t>(time ^ now_))];
  }

  std::array<std::vector<Event>, kBits + 1> buckets_{};
  std::vector<Event> taken_;
  int64_t now_ = 0;
  size_t size_ = 0;
};

}  // namespace tutti::ten

// CopyChoice: how the sender of a ring (ring_connection.h) stores the bytes of large messages: as any others, through its cache, or
// streamed past it.
//
// Model       Two cores that share a cache pass lines faster through it; where they do not, each line that is stored must first be taken
//             back from the receiver's cache and then fetched from the sender's, which takes two to three times as long as through
//             memory. Which of them ranks run on changes while a virtual machine runs. The receiver times messages from their header to
//             their end: of every kPeriod messages of a size class (a power of two) the first come both ways, kTrials each, and the
//             shorter of the two least times decides how the others come. A time counts for the way that the sender took.
// Threads     One.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tutti {

class CopyChoice {
 public:
  static constexpr int64_t kLeastBytes = int64_t{16} << 10;
  static constexpr int32_t kTrials = 2, kPeriod = 128;

  // The bit of a size in a set of classes; 0 where messages of the size are never streamed.
  static uint32_t BitOf(int64_t bytes) {
    if (bytes < kLeastBytes) return 0;
    return uint32_t{1} << std::min(Log2(bytes) - Log2(kLeastBytes), kClasses - 1);
  }

  // The classes whose next messages are to be streamed.
  uint32_t streamed() const { return streamed_; }

  // A message of that many bytes took that long.
  void Add(int64_t bytes, bool was_streamed, int64_t ns) {
    const uint32_t bit = BitOf(bytes);
    if (bit == 0) return;
    Trials& trials = classes_[static_cast<size_t>(std::countr_zero(bit))];
    Way& way = was_streamed ? trials.streamed : trials.cached;
    if (way.tried < kTrials) {
      ++way.tried;
      way.least_ns = std::min(way.least_ns, ns);
    }
    if (++trials.messages == kPeriod) trials = Trials();
    const bool next =
        trials.cached.tried == kTrials &&
        (trials.streamed.tried < kTrials || trials.streamed.least_ns < trials.cached.least_ns);
    streamed_ = next ? streamed_ | bit : streamed_ & ~bit;
  }

 private:
  static constexpr int kClasses = 32;
  struct Way {
    int32_t tried = 0;
    int64_t least_ns = std::numeric_limits<int64_t>::max();
  };
  struct Trials {
    int32_t messages = 0;  // of this period
    Way cached, streamed;
  };

  static constexpr int Log2(int64_t bytes) {
    return static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes))) - 1;
  }

  std::array<Trials, kClasses> classes_{};
  uint32_t streamed_ = 0;
};

}  // namespace tutti

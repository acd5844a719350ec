// Median: the median of many times, without keeping them.
//
// Model       Times are counted in classes whose ends are 2^(1/8) apart, 9 %, from a nanosecond to
//             18 seconds; the median is the middle of its class by logarithm, at most 4.5 % off.
// Complexity  O(1) per time, 2.2 KB.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tutti::mpi::preload {

class Median {
 public:
  void Add(double seconds) {
    const double above = std::log2(std::max(seconds, kMin) / kMin) * kClassesAnOctave;
    ++calls_;
    ++of_class_[std::min(static_cast<size_t>(above), of_class_.size() - 1)];
  }
  bool any() const { return calls_ > 0; }
  // The lower of two middle ones.
  double seconds() const {
    int64_t before = 0;
    size_t at = 0;
    while (at + 1 < of_class_.size() && (before += of_class_[at]) * 2 < calls_) ++at;
    return kMin * std::exp2((static_cast<double>(at) + 0.5) / kClassesAnOctave);
  }

 private:
  static constexpr double kMin = 1e-9;
  static constexpr int kClassesAnOctave = 8, kOctaves = 34;

  int64_t calls_ = 0;
  std::array<int64_t, size_t{kClassesAnOctave} * kOctaves> of_class_{};
};

}  // namespace tutti::mpi::preload

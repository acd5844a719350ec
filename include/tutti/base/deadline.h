// A limit of wall time that several stages of a work share.
//
//   const Deadline deadline(options.max_seconds);
//   while (!deadline.HasPassed()) Improve();
#pragma once

#include <algorithm>
#include <chrono>

namespace tutti {

class Deadline {
 public:
  // From now on; 0: none.
  explicit Deadline(double seconds) : seconds_(seconds) {}

  bool HasPassed() const { return seconds_ > 0 && Elapsed() >= seconds_; }
  // For those that understand 0 as no limit: more than 0 where there is one.
  double Left() const {
    constexpr double kLeast = 1e-6;
    return seconds_ > 0 ? std::max(seconds_ - Elapsed(), kLeast) : 0;
  }

 private:
  double Elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double seconds_;
};

}  // namespace tutti

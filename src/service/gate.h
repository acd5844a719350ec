// Gate: when the ranks of a communicator may send, so that others find the network idle (traffic windows).
//
// Model       Open for `length` of every `period`, from `phase` on, by the clock that hosts share. Without
//             windows it is always open. A clock that jumps may keep it closed for longer than a period: then it
//             stays open until it is told again, so that sharing becomes fair and nothing waits for ever.
// Units       nanoseconds; of CLOCK_REALTIME where it says real, of a clock that never jumps where it says steady.
// Reference   [mccs] 4.3 example 4
#pragma once

#include <cstdint>

namespace tutti::service {

struct GateWindows {
  int64_t period_ns = 0;  // 0: always open
  int64_t phase_ns = 0;   // it opens at phase + k * period
  int64_t length_ns = 0;  // in (0, period]

  bool AreValid() const {
    if (period_ns == 0) return true;
    return period_ns > 0 && length_ns > 0 && length_ns <= period_ns && phase_ns >= 0 &&
           phase_ns < period_ns;
  }
  bool IsOpenAt(int64_t real_ns) const {
    if (period_ns == 0) return true;
    const int64_t since = ((real_ns - phase_ns) % period_ns + period_ns) % period_ns;
    return since < length_ns;
  }
};

class Gate {
 public:
  // `windows` are valid.
  void Set(const GateWindows& windows) {
    windows_ = windows;
    closed_since_ns_ = 0;
    given_up_ = false;
  }
  bool IsOpen(int64_t real_ns, int64_t steady_ns) {
    if (given_up_ || windows_.IsOpenAt(real_ns)) {
      closed_since_ns_ = 0;
      return true;
    }
    if (closed_since_ns_ == 0) closed_since_ns_ = steady_ns;
    given_up_ = steady_ns - closed_since_ns_ > windows_.period_ns;
    if (given_up_) closed_since_ns_ = 0;
    return given_up_;
  }
  bool has_windows() const { return windows_.period_ns > 0; }
  // The clock has jumped.
  bool has_given_up() const { return given_up_; }
  const GateWindows& windows() const { return windows_; }

 private:
  GateWindows windows_;
  int64_t closed_since_ns_ = 0;  // 0: it was open
  bool given_up_ = false;
};

}  // namespace tutti::service

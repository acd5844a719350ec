// Gate: when the ranks of a communicator may send, so that others find the network idle (traffic windows).
//
// Model       Open for `length` of every `period`, from `phase` on, by the clock that hosts share; or whenever those that it
//             follows are not busy, as their daemons say (following.h). Otherwise it is always open. A clock that
//             jumps may keep it closed for longer than a period: then it stays open until it is told again, so that
//             sharing becomes fair and nothing waits for ever. Who is busy for longer than `patience` finds it open until
//             it has ended.
//             What a shut gate holds is told with it: every byte, or only collectives that have not begun, so that those which
//             have go on to their end beside the others.
// Units       nanoseconds; of CLOCK_REALTIME where it says real, of a clock that never jumps where it says steady.
// Reference   [mccs] 4.3 example 4
#pragma once

#include <cstdint>

#include "tutti/service/gate_holds.h"

namespace tutti::service {

// Of a frame.
inline GateHolds GateHoldsOf(int64_t number) {
  return number == static_cast<int64_t>(GateHolds::kLaunches) ? GateHolds::kLaunches
                                                              : GateHolds::kSends;
}

struct GateWindows {
  int64_t period_ns = 0;  // 0: always open
  int64_t phase_ns = 0;   // it opens at phase + k * period
  int64_t length_ns = 0;  // in (0, period]
  GateHolds holds = GateHolds::kSends;

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
    patience_ns_ = 0;
    closed_since_ns_ = 0;
    given_up_ = false;
  }
  // In place of windows; `patience_ns` > 0: at most so long at a stretch.
  void Follow(int64_t patience_ns, GateHolds holds = GateHolds::kSends) {
    Set({.holds = holds});
    patience_ns_ = patience_ns;
  }
  // `busy`: those that it follows.
  bool IsOpen(int64_t real_ns, int64_t steady_ns, bool busy = false) {
    if (follows() && !busy) given_up_ = false;
    if (given_up_ || (follows() ? !busy : windows_.IsOpenAt(real_ns))) {
      CountClosed(steady_ns);
      return true;
    }
    if (closed_since_ns_ == 0) closed_since_ns_ = steady_ns;
    given_up_ = steady_ns - closed_since_ns_ > (follows() ? patience_ns_ : windows_.period_ns);
    if (given_up_) CountClosed(steady_ns);
    return given_up_;
  }
  // What has begun goes on while it is shut.
  bool holds_launches_only() const { return windows_.holds == GateHolds::kLaunches; }
  bool has_windows() const { return windows_.period_ns > 0; }
  bool follows() const { return patience_ns_ > 0; }
  int64_t patience_ns() const { return patience_ns_; }
  // The clock has jumped, or whom it follows has been busy for too long.
  bool has_given_up() const { return given_up_; }
  const GateWindows& windows() const { return windows_; }
  // In all, while somebody wanted to send.
  int64_t closed_ns() const { return closed_ns_; }

 private:
  void CountClosed(int64_t steady_ns) {
    if (closed_since_ns_ != 0) closed_ns_ += steady_ns - closed_since_ns_;
    closed_since_ns_ = 0;
  }

  GateWindows windows_;
  int64_t patience_ns_ = 0;      // 0: it follows nobody
  int64_t closed_since_ns_ = 0;  // 0: it was open
  int64_t closed_ns_ = 0;
  bool given_up_ = false;
};

}  // namespace tutti::service

// ResourceScarcity: since when the system has had no descriptors or memory for what is tried again and again.
//
// Model       Each attempt that failed is told; it is for too long when attempts have failed for this reason, and for no
//             other, for a given time.
// Threads     One.
#pragma once

#include <cerrno>
#include <chrono>
#include <optional>

namespace tutti {

class ResourceScarcity {
 public:
  // An attempt has failed with `error`, an errno. True: they have for more than `most_s` for want of resources.
  bool LastsTooLong(int error, double most_s) {
    if (!IsMeantBy(error))
      since_.reset();
    else if (!since_)
      since_ = Clock::now();
    return since_ && std::chrono::duration<double>(Clock::now() - *since_).count() > most_s;
  }
  // An attempt has succeeded.
  void End() { since_.reset(); }

 private:
  using Clock = std::chrono::steady_clock;

  static bool IsMeantBy(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
           error == ENOSPC;
  }

  std::optional<Clock::time_point> since_;
};

}  // namespace tutti

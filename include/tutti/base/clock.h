// The clock that intervals are measured by, which is one for all processes of a host and which nobody sets; and the one
// that hosts share.
//
//   const int64_t begin_ns = NowNs();
//   Work();
//   const double seconds = static_cast<double>(NowNs() - begin_ns) * 1e-9;
#pragma once

#include <chrono>
#include <cstdint>

namespace tutti {

// Nanoseconds since some moment before the host's processes (CLOCK_MONOTONIC).
inline int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Nanoseconds of CLOCK_REALTIME, which hosts share as well as they are set.
inline int64_t RealNowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace tutti

// WireState: what the kernel knows of a TCP connection: whether what it sent is answered. HastenRepeats: how soon it says more.
#pragma once

#include <cstdint>
#include <optional>

namespace tutti {

struct WireState {
  uint32_t unacked = 0;  // segments on their way
  uint32_t unsent_bytes = 0;
  uint32_t probes = 0;       // of a closed window, not answered
  uint64_t acked_bytes = 0;  // ever
  uint64_t no_room_us = 0;   // ever, that the receiver's window held data back
  uint32_t repeats = 0;      // of what was not acknowledged in time, since something was
  // Ever, also such that acknowledge nothing; but none with data, which the other end repeats whether it hears us or not.
  uint32_t answers_heard = 0;
  int64_t rtt_us = 0, rtt_deviation_us = 0;
};

// Nothing: it is no TCP socket.
std::optional<WireState> LookAtWire(int fd);

// What is lost is repeated 10 ms after the round trip in which its acknowledgement was due, not 200, and a lone segment is acknowledged
// within 4 ms, not 40 (where the kernel's clock is slow, within 8 or 20). Kernels before 6.15 keep their times.
void HastenRepeats(int fd);

}  // namespace tutti

#include "wire_state.h"

// The kernel's header: that of the library lacks the later fields, and both together cannot be included.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace tutti {

std::optional<WireState> LookAtWire(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return WireState{.unacked = info.tcpi_unacked,
                   .unsent_bytes = info.tcpi_notsent_bytes,
                   .probes = info.tcpi_probes,
                   .acked_bytes = info.tcpi_bytes_acked,
                   .no_room_us = info.tcpi_rwnd_limited,
                   .repeats = info.tcpi_retransmits,
                   .answers_heard = info.tcpi_segs_in - info.tcpi_data_segs_in,
                   .rtt_us = info.tcpi_rtt,
                   .rtt_deviation_us = info.tcpi_rttvar};
}

void HastenRepeats(int fd) {
  // Of the kernel's <linux/tcp.h>, newer than Debian's.
  constexpr int kRtoMinUs = 45, kDelayedAckMaxUs = 46;
  constexpr int kRepeatUs = 10'000;
  setsockopt(fd, IPPROTO_TCP, kRtoMinUs, &kRepeatUs, sizeof(kRepeatUs));
  // Two ticks of the kernel's clock are the least it takes: of 1,000, 250 and 100 a second.
  for (const int answer_us : {4'000, 8'000, 20'000})
    if (setsockopt(fd, IPPROTO_TCP, kDelayedAckMaxUs, &answer_us, sizeof(answer_us)) == 0) break;
}

}  // namespace tutti

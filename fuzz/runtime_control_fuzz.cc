// Frames between a rank and its coordinator, in pieces as a network delivers them: whatever comes, the
// reader gives frames within its limits or says what is wrong.
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/control_link.h"
#include "runtime/remote_job.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLargest = 4096;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  tutti::ControlLink link(ends[0]);
  const size_t piece = size == 0 ? 1 : 1 + data[0] % 64;
  bool open = true;
  for (size_t at = 0; at < size && open; at += piece) {
    const size_t bytes = at + piece <= size ? piece : size - at;
    if (send(ends[1], data + at, bytes, MSG_DONTWAIT) != static_cast<ssize_t>(bytes)) break;
    while (open) {
      const auto frame = link.TryReceive(kLargest);
      open = frame.has_value();
      if (!frame || !*frame) break;
      if ((*frame)->body.size() > kLargest) std::abort();
      const auto call = tutti::remote::ParseCall(**frame);
      if (call && call->options.iterations < 1) std::abort();
      if (call && tutti::remote::ToBody(*call) != (*frame)->body) std::abort();
    }
  }
  close(ends[1]);
  return 0;
}

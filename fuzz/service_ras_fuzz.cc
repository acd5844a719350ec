// What a client of RAS sends: whatever it is, the answer is text, and the daemon keeps no more of it than a line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "service/ras.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::service::RasProtocol protocol([] { return tutti::service::RasReport{}; },
                                       [](const std::string&) { return true; });
  std::string in, out;
  bool goes_on = true;
  // In pieces, as a network may deliver it.
  for (size_t at = 0; at < size && goes_on; at += 7) {
    in.append(reinterpret_cast<const char*>(data) + at, size - at < 7 ? size - at : 7);
    goes_on = protocol.Hear(in, out);
    if (goes_on && in.find('\n') != std::string::npos) std::abort();
  }
  for (const char c : out)
    if (c != '\n' && (c < ' ' || c > '~')) std::abort();
  return 0;
}

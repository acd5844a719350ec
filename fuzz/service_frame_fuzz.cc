// What another daemon sends: bytes are no frame, or one that is written the same way.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "service/peer_link.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto frame = tutti::service::Decode(bytes);
  if (frame && tutti::service::Encode(*frame) != bytes) std::abort();
  return 0;
}

// What ranks that regroup send: bytes are none of it, or what is written the same way.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "communicator/regroup.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto ask = tutti::DecodeAsk(bytes);
  if (ask && tutti::Encode(*ask) != bytes) std::abort();
  const auto regrouped = tutti::DecodeRegrouped(bytes);
  if (regrouped && tutti::Encode(*regrouped) != bytes) std::abort();
  return 0;
}

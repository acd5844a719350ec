// What a tenant's process sends: bytes are no packet, or one that is written the same way.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tutti/ipc/packet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto packet = tutti::ipc::Decode({reinterpret_cast<const std::byte*>(data), size});
  if (!packet) return 0;
  const std::string again = tutti::ipc::Encode(*packet);
  if (again.size() != size || std::memcmp(again.data(), data, size) != 0) std::abort();
  return 0;
}

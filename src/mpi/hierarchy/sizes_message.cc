#include "hierarchy/sizes_message.h"

#include <cstdint>
#include <cstring>

#include "with_width.h"

namespace tutti::mpi {

namespace {

template <class Width>
void Put(std::span<const int64_t> sizes, std::byte* to) {
  for (const int64_t size : sizes) {
    const auto narrow = static_cast<Width>(size);
    std::memcpy(to, &narrow, sizeof(Width));
    to += sizeof(Width);
  }
}

template <class Width>
void Take(const std::byte* from, std::span<int64_t> sizes) {
  for (int64_t& size : sizes) {
    Width narrow = 0;
    std::memcpy(&narrow, from, sizeof(Width));
    size = static_cast<int64_t>(narrow);
    from += sizeof(Width);
  }
}

}  // namespace

int64_t EncodeSizes(std::span<const int64_t> sizes, std::byte* message) {
  uint64_t bits = 0;
  for (const int64_t size : sizes) bits |= static_cast<uint64_t>(size);
  const uint64_t width = bits >> 8 == 0 ? 1 : bits >> 16 == 0 ? 2 : bits >> 32 == 0 ? 4 : 8;
  std::memcpy(message, &width, sizeof(width));
  std::byte* const numbers = message + sizeof(width);
  WithWidth(static_cast<int>(width), [&](auto narrow) { Put<decltype(narrow)>(sizes, numbers); });
  return static_cast<int64_t>(sizeof(width) + width * sizes.size());
}

void DecodeSizes(const std::byte* message, std::span<int64_t> sizes) {
  uint64_t width = 0;
  std::memcpy(&width, message, sizeof(width));
  const std::byte* const numbers = message + sizeof(width);
  WithWidth(static_cast<int>(width), [&](auto narrow) { Take<decltype(narrow)>(numbers, sizes); });
}

}  // namespace tutti::mpi

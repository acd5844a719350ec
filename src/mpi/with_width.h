// Sizes of blocks travel in the fewest bytes that hold them: code that works on any width.
#pragma once

#include <cstdint>

namespace tutti::mpi {

// Calls use(T{}) with the unsigned type of `width` bytes: 1, 2, 4 or 8.
template <class Use>
void WithWidth(int width, const Use& use) {
  switch (width) {
    case 1:
      return use(uint8_t{});
    case 2:
      return use(uint16_t{});
    case 4:
      return use(uint32_t{});
    default:
      return use(uint64_t{});
  }
}

}  // namespace tutti::mpi

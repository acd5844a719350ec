// SharedMemory: one anonymous mapping that forked processes share. It has no name, so that nothing
// stays behind whoever dies, and no reservation: pages exist once they are touched.
//
// Errors      kResourceExhausted when the machine has less memory available than asked for, with
//             both figures, or when the mapping is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tutti/base/result.h"

namespace tutti {

class SharedMemory {
 public:
  SharedMemory() = default;
  static Result<SharedMemory> Map(int64_t bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  SharedMemory(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Bytes that can be taken without swapping, by the kernel's estimate and the limit of the control
// group; nothing where neither is known.
std::optional<int64_t> AvailableMemory();

}  // namespace tutti

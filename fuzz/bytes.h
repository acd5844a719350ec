// An input of a fuzzer as a series of values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tutti::fuzz {

// What an input says, in order; zeros behind its end.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  template <class Value>
  Value Take() {
    Value value{};
    const size_t size = std::min(sizeof(value), size_);
    std::memcpy(&value, data_, size);
    data_ += size;
    size_ -= size;
    return value;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace tutti::fuzz

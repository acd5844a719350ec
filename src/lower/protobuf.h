// The wire format of protocol buffers, as much of it as our writers need.
//
// Reference   protobuf.dev/programming-guides/encoding: a field is a key (number << 3 | type) and a
//             value; type 0 is a number of 7 bits a byte, the least first, the top bit set in all
//             bytes but the last; type 2 a length and so many bytes. Lists of numbers are packed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tutti::lower {

inline void AppendVarint(std::string& out, uint64_t value) {
  constexpr uint64_t kLow = 0x7f, kMore = 0x80;
  for (; value > kLow; value >>= 7) out += static_cast<char>((value & kLow) | kMore);
  out += static_cast<char>(value);
}

inline void AppendNumber(std::string& out, uint32_t field, uint64_t value) {
  AppendVarint(out, uint64_t{field} << 3);
  AppendVarint(out, value);
}

inline void AppendBytes(std::string& out, uint32_t field, std::string_view bytes) {
  constexpr uint64_t kBytes = 2;
  AppendVarint(out, uint64_t{field} << 3 | kBytes);
  AppendVarint(out, bytes.size());
  out += bytes;
}

inline void AppendNumbers(std::string& out, uint32_t field, std::span<const int32_t> values) {
  if (values.empty()) return;
  std::string packed;
  for (const int32_t value : values) AppendVarint(packed, static_cast<uint64_t>(value));
  AppendBytes(out, field, packed);
}

// A message of a stream: its length before it.
inline void AppendDelimited(std::string& out, std::string_view message) {
  AppendVarint(out, message.size());
  out += message;
}

}  // namespace tutti::lower

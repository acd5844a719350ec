// Little-endian bytes and the checksum of the binary schedule format.
// Reference: XXH64 as in the xxHash specification 0.1.1 (github.com/Cyan4973/xxHash, doc); the
// library's functions are compiled in, so nothing more is linked.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

inline void PutU8(std::string& out, uint8_t value) { out.push_back(static_cast<char>(value)); }
inline void PutU32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) PutU8(out, static_cast<uint8_t>(value >> shift));
}
inline void PutU64(std::string& out, uint64_t value) {
  PutU32(out, static_cast<uint32_t>(value));
  PutU32(out, static_cast<uint32_t>(value >> 32));
}

// At least 1, 4 and 8 bytes must be there.
inline uint8_t GetU8(const char* at) { return static_cast<uint8_t>(*at); }
inline uint32_t GetU32(const char* at) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = (value << 8) | GetU8(at + i);
  return value;
}
inline uint64_t GetU64(const char* at) {
  return uint64_t{GetU32(at)} | (uint64_t{GetU32(at + 4)} << 32);
}

inline uint64_t Checksum(std::string_view bytes, uint64_t seed = 0) {
  return XXH64(bytes.data(), bytes.size(), seed);
}

}  // namespace tutti

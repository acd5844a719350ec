// Little-endian bytes and the checksum of the binary schedule format.
// Reference: XXH64 as in the xxHash specification 0.1.1 (github.com/Cyan4973/xxHash, doc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
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

namespace xxh64 {
inline constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u, kPrime2 = 0xC2B2AE3D27D4EB4Fu,
                          kPrime3 = 0x165667B19E3779F9u, kPrime4 = 0x85EBCA77C2B2AE63u,
                          kPrime5 = 0x27D4EB2F165667C5u;
inline uint64_t RotateLeft(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
inline uint64_t Round(uint64_t sum, uint64_t lane) {
  return RotateLeft(sum + lane * kPrime2, 31) * kPrime1;
}
inline uint64_t Merge(uint64_t sum, uint64_t lane) {
  return (sum ^ Round(0, lane)) * kPrime1 + kPrime4;
}
}  // namespace xxh64

inline uint64_t Checksum(std::string_view bytes, uint64_t seed = 0) {
  using namespace xxh64;
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  uint64_t hash = seed + kPrime5;
  if (bytes.size() >= 32) {
    uint64_t a = seed + kPrime1 + kPrime2, b = seed + kPrime2, c = seed, d = seed - kPrime1;
    for (; end - at >= 32; at += 32) {
      a = Round(a, GetU64(at));
      b = Round(b, GetU64(at + 8));
      c = Round(c, GetU64(at + 16));
      d = Round(d, GetU64(at + 24));
    }
    hash = RotateLeft(a, 1) + RotateLeft(b, 7) + RotateLeft(c, 12) + RotateLeft(d, 18);
    for (uint64_t lane : {a, b, c, d}) hash = Merge(hash, lane);
  }
  hash += bytes.size();
  for (; end - at >= 8; at += 8)
    hash = RotateLeft(hash ^ Round(0, GetU64(at)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) {
    hash = RotateLeft(hash ^ (GetU32(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < end; ++at) hash = RotateLeft(hash ^ (GetU8(at) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace tutti

// Copies of the bytes that collectives move, in place of std::memcpy and std::memmove.
//
// Why         From 2 KiB on glibc copies by `rep movsb` where the processor has it. On AMD's Zen 3 that takes ten times as long where the
//             destination begins 1 to 31 bytes behind the source, modulo pages of 4 KiB (measured: 3 GB/s in place of 40): which is where a
//             large buffer of malloc (16 bytes behind a page) gets what lies in a ring or in shared memory (on a page). In pieces below
//             that size glibc copies by vectors, wherever they lie.
// Complexity  One look at both addresses; else what std::memcpy takes.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tutti {

// Whether it is copied in pieces.
inline bool LiesBadlyForCopies(const void* to, const void* from, size_t bytes) {
  constexpr uintptr_t kPage = 4096, kSlowBelow = 32;
  constexpr size_t kLeast = 2048;
  const uintptr_t behind =
      (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPage;
  return bytes >= kLeast && behind != 0 && behind < kSlowBelow;
}

inline bool Overlap(const void* a, const void* b, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return (first < second ? second - first : first - second) < bytes;
}

// The two do not overlap.
inline void CopyMemory(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;  // then both may be null
  if (!LiesBadlyForCopies(to, from, bytes)) {
    std::memcpy(to, from, bytes);
    return;
  }
  constexpr size_t kPiece = 1024;
  for (size_t at = 0; at < bytes; at += kPiece)
    std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at,
                std::min(kPiece, bytes - at));
}

// They may overlap.
inline void MoveMemory(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == from) return;
  if (Overlap(to, from, bytes))
    std::memmove(to, from, bytes);
  else
    CopyMemory(to, from, bytes);
}

// Past the cache: for what nobody near reads soon, so that lines are not fetched only to be overwritten, and what others use stays
// in the cache. They do not overlap. Others see it in order only after EndCopiesPastCache().
inline void CopyPastCache(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
#ifdef __SSE2__
  constexpr size_t kLine = 64, kInALine = kLine / sizeof(__m128i);
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const size_t misaligned = reinterpret_cast<uintptr_t>(out) % kLine;
  size_t at = misaligned == 0 ? 0 : std::min(bytes, kLine - misaligned);
  std::memcpy(out, in, at);
  for (; at + kLine <= bytes; at += kLine) {
    const auto* read = reinterpret_cast<const __m128i*>(in + at);
    auto* line = reinterpret_cast<__m128i*>(out + at);
    for (size_t i = 0; i < kInALine; ++i) _mm_stream_si128(line + i, _mm_loadu_si128(read + i));
  }
  std::memcpy(out + at, in + at, bytes - at);
#else
  CopyMemory(to, from, bytes);
#endif
}

inline void EndCopiesPastCache() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace tutti

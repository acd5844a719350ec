// float16 and bfloat16 as bits, to and from float without branches, so that loops vectorise.
//
// Both directions are exact where a value exists in the target and round to nearest, ties to even,
// where it does not; overflow becomes infinity, NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__GNUC__)
#define TUTTI_INLINE inline __attribute__((always_inline))
#else
#define TUTTI_INLINE inline
#endif

namespace tutti {

TUTTI_INLINE float HalfToFloat(uint16_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  // The half's exponent and fraction read as a float are too small by 2^112, subnormals included.
  const float scaled = std::bit_cast<float>(magnitude << 13) * std::bit_cast<float>(0x77800000u);
  const uint32_t finite = std::bit_cast<uint32_t>(scaled);
  const uint32_t special = (magnitude << 13) | 0x7f800000u;
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00u ? special : finite));
}

TUTTI_INLINE uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal: rebias the exponent by -112 and round the 13 fraction bits that go.
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Below 2^-14: adding 0.5 lets the addition itself round at 2^-24, the last bit of a subnormal.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;  // 65520 and more round to infinity
  half = magnitude > 0x7f800000u ? 0x7e00u : half;
  return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000u));
}

TUTTI_INLINE float Bfloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

TUTTI_INLINE uint16_t FloatToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

}  // namespace tutti

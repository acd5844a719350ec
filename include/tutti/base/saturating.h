// Sums and products that stay at INT64_MAX, which no count of ours reaches, instead of overflowing.
#pragma once

#include <cstdint>
#include <limits>

namespace tutti {

// Both arguments 0 or more.
constexpr int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}
constexpr int64_t SaturatingMul(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

}  // namespace tutti

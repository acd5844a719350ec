// Seeded random numbers that are the same on every machine: never std::uniform_int_distribution,
// whose values a standard library may choose.
#pragma once

#include <cstdint>

namespace tutti {

// splitmix64. Below() is unbiased (Lemire's method with rejection).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound), bound >= 1.
  uint64_t Below(uint64_t bound) {
    for (;;) {
      const uint64_t x = Next();
      __extension__ using Wide = unsigned __int128;
      const Wide product = static_cast<Wide>(x) * bound;
      const auto low = static_cast<uint64_t>(product);
      if (low >= bound || low >= (0 - bound) % bound) return static_cast<uint64_t>(product >> 64);
    }
  }

 private:
  uint64_t state_;
};

}  // namespace tutti

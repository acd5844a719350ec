#include "pcie.h"

#include <cmath>
#include <cstdlib>

#include "text.h"

namespace tutti::import {

int64_t PcieBandwidth(const std::string& speed, const std::string& lanes) {
  const double rate = std::strtod(speed.c_str(), nullptr);
  if (!(rate >= 2.5 && rate <= 256)) return 0;
  const int64_t megabits = int64_t{std::lround(rate * 1000)} * Number(lanes, 64).value_or(0);
  // 8b/10b up to 5 GT/s, 128b/130b above.
  return rate < 8 ? megabits * 100'000 : megabits * 125'000 * 128 / 130;
}

}  // namespace tutti::import

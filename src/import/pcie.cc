#include "pcie.h"

#include <cmath>
#include <cstdlib>

#include "text.h"

namespace tutti::import {
namespace {

constexpr int64_t kMaxLanes = 64;

// GT/s; 0 where it is no number of a generation of PCIe.
double PcieRateOf(const std::string& speed) {
  const double rate = std::strtod(speed.c_str(), nullptr);
  return rate >= 2.5 && rate <= 256 ? rate : 0;
}

}  // namespace

bool IsPcieSpeed(const std::string& speed) {
  return speed.empty() || Lower(speed).starts_with("unknown") || PcieRateOf(speed) > 0;
}

bool IsPcieWidth(const std::string& lanes) {
  return lanes.empty() || lanes == "255" || Number(lanes, kMaxLanes);
}

int64_t PcieBandwidth(const std::string& speed, const std::string& lanes) {
  const double rate = PcieRateOf(speed);
  const int64_t megabits = int64_t{std::lround(rate * 1000)} * Number(lanes, kMaxLanes).value_or(0);
  // 8b/10b up to 5 GT/s, 128b/130b above.
  return rate < 8 ? megabits * 100'000 : megabits * 125'000 * 128 / 130;
}

}  // namespace tutti::import

#include "tutti/base/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tutti {

Estimate EstimateOf(std::span<const double> values) {
  // Student's t, two-sided 95 %, by degrees of freedom from 1.
  constexpr std::array<double, 20> kT = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                         2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                         2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  Estimate estimate;
  if (values.empty()) return estimate;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) estimate.mean += value / n;
  if (values.size() < 2) return estimate;
  double squares = 0;
  for (const double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
  const double t = values.size() - 2 < kT.size() ? kT[values.size() - 2] : 1.96;
  estimate.half = t * std::sqrt(squares / (n - 1) / n);
  return estimate;
}

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace tutti

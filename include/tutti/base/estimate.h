// The mean of a few measurements or draws and how far it may be off; their median.
//
// Model       The 95 % interval of the mean, two-sided, by Student's t of n - 1 degrees of freedom:
//             mean +- t s / sqrt(n).
// Complexity  O(n).
#pragma once

#include <span>
#include <vector>

namespace tutti {

struct Estimate {
  double mean = 0;
  double half = 0;  // half the width of the interval; 0 of one value
};
Estimate EstimateOf(std::span<const double> values);

// The upper one of an even number; 0 for none.
double MedianOf(std::vector<double> values);

}  // namespace tutti

#include "mcf/link_lengths.h"

#include <algorithm>

#include "mcf/exponential.h"

namespace tutti {
namespace {

// Of the largest weight. Lengths must stay above what a sum of them can lose to rounding.
constexpr double kLeastWeight = 1e-9;
constexpr double kLargestExponent = 20;

}  // namespace

LinkLengths::LinkLengths(const FlowNetwork& network)
    : load(network.num_bundles(), 0),
      length(network.num_bundles(), 0),
      rate(network.num_bundles(), 0),
      network_(network),
      weight_(network.num_bundles(), 1) {}

void LinkLengths::Update(double steepness, double strain) {
  steepness_ = steepness;
  strain_ = strain;
  for (size_t e = 0; e < load.size(); ++e) {
    rate[e] = steepness / (network_.capacity[e] * strain);
    const double exponent = std::min(rate[e] * load[e] - steepness, kLargestExponent);
    length[e] = weight_[e] * PortableExp(exponent) / network_.capacity[e];
  }
}

void LinkLengths::FollowLengths(double step) {
  double largest = 0;
  for (size_t e = 0; e < load.size(); ++e) {
    const double exponent = std::min(rate[e] * load[e] - steepness_, kLargestExponent);
    weight_[e] *= PortableExp(step * exponent);
    largest = std::max(largest, weight_[e]);
  }
  double sum = 0;
  for (double& weight : weight_) {
    weight = std::max(weight, largest * kLeastWeight);
    sum += weight;
  }
  const double scale = static_cast<double>(weight_.size()) / sum;
  for (double& weight : weight_) weight *= scale;
}

double LinkLengths::LargestStrain() const {
  double largest = 0;
  for (size_t e = 0; e < load.size(); ++e)
    largest = std::max(largest, load[e] / network_.capacity[e]);
  return largest;
}

}  // namespace tutti

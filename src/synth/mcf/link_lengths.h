// Loads of all bundles and the lengths that grow with them:
// length = weight * exp(rate * load - steepness) / capacity, rate = steepness / (capacity *
// strain). At load = capacity * strain it is weight / capacity, so that `weight` is the price of a
// bundle that is just full.
#pragma once

#include <vector>

#include "mcf/network.h"

namespace tutti {

class LinkLengths {
 public:
  explicit LinkLengths(const FlowNetwork& network);

  // What follows from `load` and the weights, afresh. `strain` is the load over capacity that is
  // aimed at.
  void Update(double steepness, double strain);
  // Weights follow the lengths by the power `step`, and are scaled to mean 1.
  void FollowLengths(double step);
  double LargestStrain() const;  // load over capacity

  std::vector<double> load;    // of a bundle, in mean demands
  std::vector<double> length;  // of a bundle
  std::vector<double> rate;    // d log(length) / d load

 private:
  const FlowNetwork& network_;
  std::vector<double> weight_;
  double steepness_ = 0, strain_ = 0;
};

}  // namespace tutti

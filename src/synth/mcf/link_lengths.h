// Loads of all bundles and the lengths that grow with them: an augmented Lagrangian.
//
// Model       length = max(weight + steepness * excess, a little) / capacity, where excess is
//             load / (capacity * strain) - 1 and `strain` the load over capacity that is aimed at:
//             the derivative of a quadratic penalty around `weight`, the price of a bundle that is
//             just full. Weights follow the lengths, so that a small steepness, under which flows
//             settle fast, ends at the optimum nevertheless.
// Units       Weights have mean 1, loads are in mean demands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "mcf/network.h"

namespace tutti {

class LinkLengths {
 public:
  explicit LinkLengths(const FlowNetwork& network);

  void ClearLoad();
  void AddLoad(size_t bundle, double load) { states_[bundle].load += load; }
  double LargestStrain() const;  // load over capacity

  // Lengths afresh from loads and weights.
  void Update(double steepness, double strain);
  // Weights take `step` times the change that their lengths took; then they are scaled to mean 1.
  void FollowLengths(double step);

  // The load of one bundle changes, and with it its length.
  void Shift(size_t bundle, double change) {
    State& state = states_[bundle];
    state.load += change;
    state.raw += state.slope * change;
    length_[bundle] = std::max(state.raw, state.least);
  }
  const std::vector<double>& length() const { return length_; }
  // d length / d load, now (0 where the length is at its least) and once the length grows.
  double SlopeDown(size_t bundle) const {
    const State& state = states_[bundle];
    return state.raw > state.least ? state.slope : 0;
  }
  double SlopeUp(size_t bundle) const { return states_[bundle].slope; }
  // The load that changes weight + steepness * excess by 1.
  double Room(size_t bundle) const { return states_[bundle].room; }

 private:
  struct State {
    double load = 0, weight = 1;
    double raw = 0, least = 0;  // the length before and what it is at least
    double slope = 0, room = 0;
  };

  const FlowNetwork& network_;
  std::vector<State> states_;
  std::vector<double> length_;
  double steepness_ = 0, strain_ = 0;
};

}  // namespace tutti

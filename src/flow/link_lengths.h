// Loads of all bundles and the lengths that grow with them: an augmented Lagrangian.
//
// Model       length = max(weight + steepness * excess, a little) / capacity, where excess is
//             load / (capacity * strain) - 1 and `strain` the load over capacity that is aimed at:
//             the derivative of a quadratic penalty around `weight`, the price of a bundle that is
//             just full. Weights follow the lengths, so that a small steepness, under which flows
//             settle fast, ends at the optimum nevertheless.
// Symmetry    Under a group that acts freely on the ranks, the flows of representative sources
//             stand for those of all: bundles of one orbit have the same load, which a flow on one
//             of them adds to in the number of sources over that of bundles.
// Units       Weights have mean 1, loads are in mean demands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tutti/flow/automorphisms.h"
#include "tutti/flow/network.h"

namespace tutti {

class LinkLengths {
 public:
  LinkLengths(const FlowNetwork& network, const NetworkGroup& group);

  void ClearLoad();
  // Lengths for the flow of a representative source.
  void AddLoad(size_t bundle, double load) {
    State& state = StateOf(bundle);
    state.load += load * state.repeats;
  }
  double LargestStrain() const;  // load over capacity

  // Weights in proportion to lengths of the bundles, which form no orbits.
  void SetWeights(const std::vector<double>& lengths);
  // Lengths afresh from loads and weights.
  void Update(double steepness, double strain);
  // Weights take `step` times the change that their lengths took; then they are scaled to mean 1.
  void FollowLengths(double step);

  // A representative's flow on one bundle changes, and with it loads and lengths.
  void Shift(size_t bundle, double change) {
    const size_t orbit = Orbit(bundle);
    State& state = states_[orbit];
    state.load += state.repeats * change;
    state.raw += state.slope * change;
    const double length = std::max(state.raw, state.least);
    length_[bundle] = length;
    if (!has_orbits_) return;
    for (int32_t i = first_member_[orbit]; i < first_member_[orbit + 1]; ++i)
      length_[static_cast<size_t>(members_[static_cast<size_t>(i)])] = length;
  }
  const std::vector<double>& length() const { return length_; }
  // What the length is when load over capacity is `strain`, which is at least that aimed at.
  double LengthAt(size_t bundle, double strain) const {
    const State& state = StateOf(bundle);
    return (state.weight + steepness_ * (strain / strain_ - 1)) / state.capacity;
  }
  double load(size_t bundle) const { return StateOf(bundle).load; }
  // d length / d flow of a representative on it, now (0 where the length is at its least) and once
  // the length grows.
  double SlopeDown(size_t bundle) const {
    const State& state = StateOf(bundle);
    return state.raw > state.least ? state.slope : 0;
  }
  double SlopeUp(size_t bundle) const { return StateOf(bundle).slope; }
  // The flow that changes weight + steepness * excess by 1.
  double Room(size_t bundle) const { return StateOf(bundle).room; }
  size_t Orbit(size_t bundle) const {
    return has_orbits_ ? static_cast<size_t>(group_.bundle_orbit[bundle]) : bundle;
  }
  size_t num_orbits() const { return states_.size(); }

 private:
  struct State {
    double capacity = 0, repeats = 0;  // sources over bundles of the orbit
    double load = 0, weight = 1;
    double raw = 0, least = 0;  // the length before and what it is at least
    double slope = 0, room = 0;
  };
  State& StateOf(size_t bundle) { return states_[Orbit(bundle)]; }
  const State& StateOf(size_t bundle) const { return states_[Orbit(bundle)]; }

  void ScaleWeights();

  const NetworkGroup& group_;
  const bool has_orbits_;                        // of more than one bundle
  std::vector<State> states_;                    // of an orbit
  std::vector<int32_t> first_member_, members_;  // bundles of an orbit
  std::vector<double> length_;                   // of a bundle
  double steepness_ = 0, strain_ = 0;
};

}  // namespace tutti

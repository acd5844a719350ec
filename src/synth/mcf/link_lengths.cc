#include "mcf/link_lengths.h"

namespace tutti {
namespace {

// Of the mean weight. No length is 0, so that potentials rise along every bundle.
constexpr double kLeastWeight = 1e-11;

}  // namespace

LinkLengths::LinkLengths(const FlowNetwork& network)
    : network_(network), states_(network.num_bundles()), length_(network.num_bundles(), 0) {}

void LinkLengths::ClearLoad() {
  for (State& state : states_) state.load = 0;
}

double LinkLengths::LargestStrain() const {
  double largest = 0;
  for (size_t e = 0; e < states_.size(); ++e)
    largest = std::max(largest, states_[e].load / network_.capacity[e]);
  return largest;
}

void LinkLengths::Update(double steepness, double strain) {
  steepness_ = steepness;
  strain_ = strain;
  for (size_t e = 0; e < states_.size(); ++e) {
    State& state = states_[e];
    const double capacity = network_.capacity[e], full = capacity * strain;
    state.raw = (state.weight + steepness * (state.load / full - 1)) / capacity;
    state.least = kLeastWeight / capacity;
    state.slope = steepness / (capacity * full);
    state.room = full / steepness;
    length_[e] = std::max(state.raw, state.least);
  }
}

void LinkLengths::FollowLengths(double step) {
  double sum = 0;
  for (size_t e = 0; e < states_.size(); ++e) {
    State& state = states_[e];
    const double excess = state.load / (network_.capacity[e] * strain_) - 1;
    state.weight = std::max(0.0, state.weight + step * steepness_ * excess);
    sum += state.weight;
  }
  const double scale = static_cast<double>(states_.size()) / sum;
  for (State& state : states_) state.weight *= scale;
}

}  // namespace tutti

#include "link_lengths.h"

#include "tutti/base/check.h"

namespace tutti {
namespace {

// Part of the mean weight. No length is 0, so that potentials rise along every bundle.
constexpr double kMinWeight = 1e-11;

}  // namespace

LinkLengths::LinkLengths(const FlowNetwork& network, const NetworkGroup& group)
    : group_(group),
      has_orbits_(group.orbit_size.size() < network.num_bundles()),
      states_(group.orbit_size.size()),
      first_member_(group.orbit_size.size() + 1, 0),
      members_(network.num_bundles()),
      length_(network.num_bundles(), 0) {
  for (size_t o = 0; o < states_.size(); ++o) {
    first_member_[o + 1] = first_member_[o] + group.orbit_size[o];
    states_[o].repeats = static_cast<double>(group.elements.size()) / group.orbit_size[o];
  }
  std::vector<int32_t> next(first_member_.begin(), first_member_.end() - 1);
  for (size_t e = 0; e < length_.size(); ++e) {
    members_[static_cast<size_t>(next[Orbit(e)]++)] = static_cast<int32_t>(e);
    StateOf(e).capacity = network.capacity[e];
  }
}

void LinkLengths::ClearLoad() {
  for (State& state : states_) state.load = 0;
}

double LinkLengths::LargestStrain() const {
  double largest = 0;
  for (const State& state : states_) largest = std::max(largest, state.load / state.capacity);
  return largest;
}

void LinkLengths::Update(double steepness, double strain) {
  steepness_ = steepness;
  strain_ = strain;
  for (State& state : states_) {
    const double full = state.capacity * strain;
    state.raw = (state.weight + steepness * (state.load / full - 1)) / state.capacity;
    state.least = kMinWeight / state.capacity;
    state.slope = state.repeats * steepness / (state.capacity * full);
    state.room = full / (steepness * state.repeats);
  }
  for (size_t e = 0; e < length_.size(); ++e)
    length_[e] = std::max(StateOf(e).raw, StateOf(e).least);
}

void LinkLengths::FollowLengths(double step) {
  for (State& state : states_) {
    const double excess = state.load / (state.capacity * strain_) - 1;
    state.weight = std::max(0.0, state.weight + step * steepness_ * excess);
  }
  ScaleWeights();
}

void LinkLengths::SetWeights(const std::vector<double>& lengths) {
  TUTTI_CHECK(!has_orbits_);
  for (size_t e = 0; e < states_.size(); ++e) states_[e].weight = lengths[e] * states_[e].capacity;
  ScaleWeights();
}

// To mean 1. Where no link is as full as was aimed at, which doubles say of demands far apart, all
// weights may have gone: then from the beginning.
void LinkLengths::ScaleWeights() {
  double sum = 0;
  for (size_t o = 0; o < states_.size(); ++o) sum += states_[o].weight * group_.orbit_size[o];
  const double scale = static_cast<double>(length_.size()) / sum;
  for (State& state : states_) state.weight = sum > 0 ? state.weight * scale : 1;
}

}  // namespace tutti

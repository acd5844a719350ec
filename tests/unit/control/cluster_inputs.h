// Networks and jobs that tests of policies share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/random.h"
#include "tutti/control/policy.h"
#include "tutti/topo/expression.h"

namespace tutti {

inline ClusterView ViewOf(const std::string& expression) {
  const Result<Topology> topology = ParseTopology(expression);
  EXPECT_TRUE(topology) << topology.error().message;
  Result<ClusterView> view = ClusterView::Make(*topology);
  EXPECT_TRUE(view) << view.error().message;
  return std::move(view).value_or(ClusterView{});
}

// Four hosts with two devices and two virtual NICs of 100 Mbit/s, two racks, two spines, links
// between switches of 100 Mbit/s. Ranks 2h and 2h + 1 are on host h; hosts 0 and 1 in rack 0.
inline ClusterView Testbed() {
  return ViewOf(
      "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(2,2),oversubscription=2)");
}

// Two racks of `hosts` hosts with one rank each, `spines` routes, every link 100 Mbit/s. Ranks
// 0 .. hosts - 1 are in rack 0.
inline ClusterView TwoRacks(int32_t hosts, int32_t spines) {
  return ViewOf("spine_leaf(2," + std::to_string(spines) + "," + std::to_string(hosts) +
                ",bw=100Mbit/s)");
}

// Job j is rank j of rack 0 and rank j of rack 1: a flow each way.
inline PolicyInput PairsOf(const ClusterView& view, int32_t jobs) {
  PolicyInput input{
      .view = &view, .jobs = {}, .channels = 1, .nics = NicChoice::kOwn, .background = {}};
  for (int32_t j = 0; j < jobs; ++j)
    input.jobs.push_back({.id = j, .ranks = {j, view.num_ranks() / 2 + j}, .running = {}});
  return input;
}

inline Result<PolicyOutput> DecideBy(std::string_view name, const PolicyInput& input) {
  return Decide(**FindPolicy(name), input);
}

inline PolicyOutput MustDecide(std::string_view name, const PolicyInput& input) {
  Result<PolicyOutput> output = DecideBy(name, input);
  EXPECT_TRUE(output) << output.error().message;
  return std::move(output).value_or(PolicyOutput{});
}

// Jobs of 2 to 12 ranks of `view`, which may share ranks' hosts but no ranks; every attribute drawn.
inline PolicyInput RandomInput(const ClusterView& view, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> all(static_cast<size_t>(view.num_ranks()));
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.Below(i)]);
  PolicyInput input{.view = &view, .jobs = {}, .background = {}, .seed = seed};
  input.channels = static_cast<int32_t>(1 + random.Below(3));
  input.reserved_routes = static_cast<int32_t>(random.Below(2));
  size_t next = 0;
  for (int32_t id = 0; id < 5; ++id) {
    const size_t ranks = 2 + random.Below(11);
    if (next + ranks > all.size()) break;
    input.jobs.push_back({.id = id,
                          .ranks = {all.begin() + static_cast<std::ptrdiff_t>(next),
                                    all.begin() + static_cast<std::ptrdiff_t>(next + ranks)},
                          .priority = static_cast<int32_t>(random.Below(3)),
                          .running = {},
                          .weight = static_cast<int32_t>(1 + random.Below(4)),
                          .deadline_ns = static_cast<int64_t>(random.Below(4)),
                          .tenant = static_cast<int32_t>(random.Below(4)) - 1});
    next += ranks;
  }
  return input;
}

}  // namespace tutti

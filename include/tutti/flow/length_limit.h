// What integer lengths of the bundles prove: f <= sum of bandwidth x length / sum of demand x
// distance, in exact numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "source_flow.h"
#include "tutti/flow/network.h"

namespace tutti {

inline constexpr int64_t kLongestLength = int64_t{1} << 40;

// Scaled so that the longest is kLongestLength, rounded.
std::vector<int64_t> WholeLengths(const std::vector<double>& lengths);

// In proportion to 1 / bandwidth: exactly, where the least common multiple allows it.
std::vector<int64_t> InverseBandwidths(const FlowNetwork& network);

// f as the flow's largest strain allows it, or as lengths limit it; both in units of the smallest
// link's bandwidth and of the mean demand.
Rational RateOfStrain(const FlowNetwork& network, const DemandTable& demand,
                      const Rational& strain);

// Nothing where all demands have paths of length 0. `flows`: one for each
// `alike` sources that differ by symmetries of the lengths, where distances are first
// looked for; any order of nodes does. Sources in parallel. O(n m) where the flows' paths are about
// shortest.
std::optional<Rational> LengthLimit(const FlowNetwork& network, const DemandTable& demand,
                                    const std::vector<SourceFlow>& flows, int64_t alike,
                                    const std::vector<int64_t>& lengths);

}  // namespace tutti

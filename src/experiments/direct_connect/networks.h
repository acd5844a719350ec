// Networks of tables 4 and 7 of [direct-connect], and everything those tables say of a network.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "experiment.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/sched/cost.h"
#include "tutti/topo/topology.h"

namespace tutti::direct {

inline constexpr int32_t kTableDegree = 4;

// A row of table 7 (which holds those of table 4); all figures as printed.
struct PrintedNetwork {
  int32_t ranks;
  const char *recipe, *tl, *tb, *diameter, *flow;
};
// In the order of the paper: N ascending, then TL.
std::span<const PrintedNetwork> PrintedNetworks();
// "Theoretical bound" of one size: the recipe is empty.
std::span<const PrintedNetwork> PrintedBounds();

// What the paper prints as f of line(circulant(16,3,4),3) is more than is possible on it; this
// network has the same TL and TB, and that f.
inline constexpr PrintedNetwork kSuspected = {
    1024, "line(debruijn_mod(4,2),3)", "6", "1.020", "6", "8.12e-4"};
inline constexpr const char* kSuspectedNote =
    "The paper's f and all-to-all time of line(circulant(16,3,4),3) are better than the proven "
    "limit of that network; they are within 0.1 % those of line(debruijn_mod(4,2),3), of the same "
    "TL and "
    "TB.";

// The concurrent flow of all-to-all in units of a link, at most `gap` below what is possible.
struct Flow {
  Rational lower, upper;
};
inline constexpr double kFlowGap = 3e-4;
Result<Flow> ComputeFlow(const Topology& topology, double gap = kFlowGap);

// What there is to say of one recipe; a part that cannot be had is an error of its own.
struct NetworkFigures {
  Result<StepCost> cost;  // of the all-gather by `algorithm`, made and proven
  Result<int32_t> diameter;
  Result<Flow> flow;
};
// kCancelled; other faults stand in the parts.
Result<NetworkFigures> MeasureNetwork(std::string_view recipe, std::string_view algorithm);

}  // namespace tutti::direct

// What policies are made of: rings of all jobs, and flows fitted to routes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tutti/control/flow_assignment.h"
#include "tutti/control/policy.h"

namespace tutti {

// Every flow by ECMP.
PolicyOutput WithRings(const PolicyInput& input, RingOrder order);

struct PinRules {
  int32_t reserved_routes = 0;       // of each set, from the first on, for the classes of the input
  bool weighted = false;             // demands by weight
  std::vector<int32_t> stages = {};  // by job; empty: all alike
};
// The flows of all jobs, in their order. kInvalidArgument: more flows run than there are.
Result<FlowProblem> ProblemOf(const PolicyInput& input, const PinRules& rules,
                              const PolicyOutput& output);
// How policies choose routes: every flow is pinned; none is.
Status PinFlows(const PolicyInput& input, const PinRules& rules, PolicyOutput& output);
Status LeaveToEcmp(const PolicyInput& input, PolicyOutput& output);

// By job, the number of its key among all keys in order: what stages are made of.
std::vector<int32_t> StagesBy(const std::vector<std::pair<int64_t, int64_t>>& keys);

}  // namespace tutti

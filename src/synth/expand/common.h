// What all expansions share: checking what they are given, and finishing what they make.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tutti/base/result.h"
#include "tutti/base/saturating.h"
#include "tutti/sched/schedule.h"
#include "tutti/topo/topology.h"

namespace tutti::expand {

// kInvalidArgument unless `schedule` is a step schedule of the all-gather on `base`.
Status CheckBase(std::string_view operation, const Topology& base, const Schedule& schedule);
// The degree; kInfeasible where nodes have different numbers of ports, naming two.
Result<int32_t> RegularDegree(std::string_view operation, const Topology& base);

// One past the last step in which something is sent.
int32_t UsedSteps(const Schedule& schedule);

// a * b, and kResourceExhausted where a schedule cannot have so many units (or transfers).
Result<int32_t> MultiplyUnits(int64_t a, int64_t b);

// An empty all-gather for `topology` with room for `num_transfers`.
Result<Schedule> Start(const Topology& topology, int32_t units_per_shard, uint64_t seed,
                       int64_t num_transfers);

}  // namespace tutti::expand

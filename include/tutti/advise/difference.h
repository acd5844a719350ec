// How two schedules differ.
//
// Model       Two schedules are comparable where they are of one collective (an all-reduce over one
//             shard and one over N are) and one network. They are equal where they have the same
//             transfers at the same times, in whatever order inside a step or a start; who made
//             them does not count.
// Complexity  O(transfers log transfers).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/advise/explanation.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"
#include "tutti/sim/simulator.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct ScheduleOn {
  const Topology& topology;
  const Schedule& schedule;
};

// One reason a line; empty: they are comparable.
std::vector<std::string> WhyNotComparable(const ScheduleOn& a, const ScheduleOn& b);
// For schedules that are comparable.
bool SameTransfers(const Schedule& a, const Schedule& b);

struct LinkDifference {
  LinkId link{0};
  Rational a = {}, b = {};  // shares of M over it
};
// Links that carry unlike much, by the time that the difference takes, longest first. Both rows are
// of one network.
std::vector<LinkDifference> LinkDifferences(const Topology& topology,
                                            const std::vector<LinkTraffic>& a,
                                            const std::vector<LinkTraffic>& b);

// By when each tenth of all that a schedule sends has arrived: ten times, ascending; empty where it
// sends nothing. `trace` of a run that recorded its messages.
std::vector<double> ArrivalOfTenths(const std::vector<SimMessage>& trace);

// Where one schedule falls behind another in one simulated run each.
struct FallingBehind {
  bool is_b = false;   // which one
  int32_t tenths = 0;  // of what it sends, when for the first time it is later by more than 1 %
  double time_s = 0, other_s = 0;  // by when they have arrived, of the one behind and the other
  LinkId on{0};  // what its critical chain was sending over when the other was there
};
// The tenth is of the whole time of the faster one; nullopt: neither is later by so much at any.
Result<std::optional<FallingBehind>> FirstBehind(const ScheduleOn& a, const ScheduleOn& b,
                                                 SimOptions options);

}  // namespace tutti

// At which sizes the best algorithm changes.
//
// Model   Schedules are held as they were made; each has a time at every size from the smallest one
//         that it was made for, and of an algorithm the fastest one counts. By the alpha-beta cost
//         the changes are exact (LeastCurves). By simulation, and where some schedule is timed or
//         an algorithm cuts large sizes finer, all sizes 2^k are looked at and the changes between
//         them bisected to the byte: two changes between neighbours that undo each other are not
//         seen.
// Units   Whole bytes of M, from 1 on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"
#include "tutti/sim/simulator.h"

namespace tutti {

struct HeldSchedule {
  std::string algorithm;
  const Topology* topology;  // must outlive
  Schedule schedule;
  int64_t from_bytes =
      1;  // of smaller sizes the algorithm makes another: chunks of it are too small
};

struct BestRange {
  std::string algorithm;
  int64_t from_bytes = 1;  // up to where the next begins
};

// One schedule of each algorithm is held from 1 byte on. By the alpha-beta cost, which for a timed
// schedule is its plan on the clock of another size.
Result<std::vector<BestRange>> BestByCost(const std::vector<HeldSchedule>& held);
// By simulation; options.size_bytes is not looked at.
Result<std::vector<BestRange>> BestBySimulation(const std::vector<HeldSchedule>& held,
                                                const SimOptions& options);

}  // namespace tutti

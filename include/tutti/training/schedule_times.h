// What one schedule takes at any size, each size simulated once.
//
// Model       sim/simulator.h. A timed schedule that was made for another size keeps its order of
//             messages.
// Errors      ps() returns 0 once the simulator has refused; fault() says what it said.
// Threads     One at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"
#include "tutti/sim/simulator.h"
#include "tutti/topo/topology.h"

namespace tutti {

class ScheduleTimes {
 public:
  // `topology` outlives this.
  ScheduleTimes(const Topology& topology, Schedule schedule, const SimOptions& options);

  int64_t ps(int64_t size_bytes);  // rounded to whole picoseconds
  const std::optional<Error>& fault() const { return fault_; }

 private:
  const Topology& topology_;
  Schedule schedule_;
  SimOptions options_;
  std::map<int64_t, int64_t> ps_of_size_;
  std::optional<Error> fault_;
};

}  // namespace tutti

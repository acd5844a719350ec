// From a schedule to a plan, and the checker of plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/lower/plan.h"
#include "tutti/sched/schedule.h"

namespace tutti {

struct LowerOptions {
  int32_t channels = 1;  // spread each connection's messages over so many channels (and streams)
};

// A verified schedule on a network without switches. Transfers of one step that move neighbouring
// intervals over one link become one message. kInvalidArgument for switches (names unwind).
Result<Plan> Lower(const Topology& topology, const Schedule& schedule,
                   const LowerOptions& options = {});

struct PlanFault {
  std::string message;  // rank, stream, instruction, and the other side
};
struct CheckOptions {
  int32_t fifo_depth = 2;  // messages a connection holds before a send blocks; 0: rendezvous
  bool in_place = false;   // judge with aliased buffers
};
// Runs the plan symbolically: FIFO order and counts agree on both ends, no deadlock with bounded
// FIFOs, every read is of written data, results are complete and reduced exactly once, and no
// order of execution that the dependencies allow gives another result (races). Empty: correct.
std::vector<PlanFault> CheckPlan(const Plan& plan, const CheckOptions& options = {});

}  // namespace tutti

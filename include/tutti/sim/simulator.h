// Discrete-event simulation of a schedule on a topology. Deterministic: events at one time are
// ordered by link and transfer, never by address or thread.
//
// Model       A link carries one message at a time, first come first served;
//             a node forwards only what has fully arrived. Link models held and pipelined.
//             Step schedules: all transfers of one step over one link are one message; with a
//             barrier (a step starts when the last message of the step before has arrived) or eager
//             (a message starts when its data has arrived, what it overwrites has been sent, and
//             the link's earlier steps are done). Eager is never later than with the barrier.
//             Timed schedules: every transfer is its own message, in the order of its start, as
//             soon as its link is free and what it carries in the plan has arrived; never later
//             than planned where size, link model and network are those of the plan.
//             Host limits count like two more links of the rank, one for all that it sends in a
//             step and one for all that it takes in, with the least alpha of its links that way
//             (sched/cost.h). With a barrier, all of it has arrived when the limit has let all of
//             it through. Eager: a message starts when the hosts at both ends are through with what
//             they passed in earlier steps (with held links an alpha later); the messages of a step
//             pass a host one after the other in the order of their starts, the smaller first, and
//             none arrives before it has passed both. Neither host counts where its links together
//             are no faster than its limit.
// IMPORTANT   The simulator does not judge: data that never arrives is not waited for. Verify
//             first (verify/verifier.h).
// Units       seconds and bytes as doubles; sums of exact inputs, no randomness.
// Errors      kInvalidArgument: size below 1, another topology than the schedule was made for, or a
//             schedule that breaks S1 .. S4, with the transfer. kInfeasible: host limits and a
//             timed schedule. kCancelled.
// Complexity  O(transfers + messages log messages); >= 5 million transfers a second on one core.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti {

enum class StepMode : uint8_t { kBarrier, kEager };

struct SimOptions {
  int64_t size_bytes = 0;  // [M], >= 1
  LinkModel link_model = LinkModel::kHeld;
  StepMode step_mode = StepMode::kBarrier;
  bool record_messages = false;  // for traces
};

struct SimMessage {
  LinkId link;
  int32_t step = 0;
  double start_s = 0, free_s = 0, arrive_s = 0;  // takes the link, lets it go, has arrived
  double bytes = 0;
  int64_t first_transfer = 0;  // index into the schedule
};

struct SimReport {
  double time_s = 0;            // the last arrival
  double algbw = 0, busbw = 0;  // bytes/s, as nccl-tests
  int64_t messages = 0;
  int32_t max_in_flight = 0;
  std::vector<double> link_busy_s;  // by link
  std::vector<double> link_bytes;
  std::vector<SimMessage> trace;  // in order of start, when asked for
};

Result<SimReport> Simulate(const Topology& topology, const Schedule& schedule,
                           const SimOptions& options);

// The report's messages over time, in equal bins from 0 to time_s. Needs record_messages; empty
// without messages or bins. O(messages + bins + bins that messages span).
struct UtilisationBin {
  double begin_s = 0, end_s = 0;
  double links_busy = 0;  // share of all links that are taken, on average over the bin: 0 to 1
  double in_flight = 0;   // messages between start and arrival, on average over the bin
};
std::vector<UtilisationBin> UtilisationOverTime(const SimReport& report, int32_t bins);

// Chrome trace format (chrome://tracing, Perfetto): one row per link.
std::string ToChromeTrace(const Topology& topology, const Schedule& schedule,
                          const SimReport& report);

}  // namespace tutti

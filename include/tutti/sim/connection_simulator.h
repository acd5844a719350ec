// Simulation of a step schedule between ranks whose connections run over a network of switches, where
// flows that meet on a link share it.
//
// Model       All transfers of one step over one link of the schedule's own network are one message,
//             which flows over that link's path through the switches. The messages of a step start
//             together and stream at max-min fair rates (sim/fair_sharing.h), which change whenever
//             one ends; a message arrives the alphas of its path after its last byte has left. The
//             next step starts when the last one has arrived (a barrier). Host limits hold for what
//             begins and what ends at a rank.
// Bound       Never faster than a step's busiest link needs for its bytes, summed over the steps.
// Units       seconds and bytes as doubles; no randomness.
// Complexity  O(events x uses log links); steps equal to the one before cost nothing.
// Errors      kInvalidArgument: size below 1, another network than the schedule was made for, a timed
//             schedule, other numbers of ranks, as many paths as links wanted, a path that is none
//             between the ends of its link. kCancelled.
// Reference   [mccs] 6.5; the steps are ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct ConnectionSimReport {
  double time_s = 0;
  double algbw = 0, busbw = 0;     // bytes/s, as nccl-tests
  int64_t events = 0;              // times at which rates changed
  int32_t max_on_a_link = 0;       // messages of one step on one link of `switched`
  std::vector<double> link_bytes;  // by link of `switched`
};

// `schedule` is one of `logical`, a network of ranks alone; rank i is rank i of `switched`. `paths` by
// link of `logical`; of links that nothing is sent over they do not count.
Result<ConnectionSimReport> SimulateConnections(const Topology& logical, const Schedule& schedule,
                                                const Topology& switched,
                                                std::span<const std::vector<LinkId>> paths,
                                                int64_t size_bytes);

}  // namespace tutti

// Messages between ranks over a network that only forwards them: how [tacos] runs the basic
// algorithms on networks that they were not made for.
//
// Model       An algorithm is made and proven on the network it was made for (its *logical*
//             network: a ring, all pairs linked). What a step of it sends over one logical link is
//             a message, which leaves when all that its sender has to have got in earlier steps is
//             there, and crosses the real network on one fixed shortest way (fewest hops; of
//             several the one whose next node has the nearest number, which in grids is the last
//             dimension first), hop by hop: a node passes on only what has fully arrived, a link
//             carries one message at a time, first come first served. Nothing is merged or reduced
//             on the way, unlike in a schedule of ours.
// Units       Whole picoseconds inside.
// Complexity  O(messages * hops * log messages), and for each message the transfers into its
//             sender of the same shards.
// Reference   [tacos] section V.C, figure 5. Deviation: ASTRA-sim chooses other ways where several
//             are shortest; the paper does not say which.
#pragma once

#include <span>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"
#include "tutti/sim/simulator.h"
#include "tutti/topo/topology.h"

namespace tutti::tacos {

struct Logical {
  const Topology& topology;  // as many ranks as the network
  const Schedule& schedule;  // of steps, on it
  // The rank of the network that each of its ranks is; empty: the same number.
  std::span<const NodeId> place = {};
};

// options.step_mode does not matter: messages wait for nothing but data. The report is of the links
// of `network`, without max_in_flight; first_transfer counts messages. kCancelled.
Result<SimReport> SimulateMessages(const Topology& network, const Logical& logical,
                                   const SimOptions& options);

}  // namespace tutti::tacos

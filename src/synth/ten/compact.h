// Compact: the final pass over a schedule. Drops transfers that nobody needs, and starts the others
// earlier where their link is free and what they send is there.
//
// Model       For each piece of a shard it is followed who holds which value when: the rank's own,
//             or the one that a copy brought or a reduction made. A copy that brings a value which
//             is there already, and a transfer whose value neither reaches a destination nor is
//             sent on, are dropped. Then copies, in order of their start, go to the first free
//             place on their link behind what brought their value; reductions keep their times, so
//             that sums stay the same, and a copy never comes before what its place at the receiver
//             was used for until then. Where all transfers are copies of a timed schedule, they are
//             also pushed to the end, the last first, and back again, as long as that saves time:
//             what could wait makes room for what could not.
//             A step takes a transfer from a later one when its link is then no busier, and of no
//             larger alpha, than the step's busiest link; empty steps vanish.
// Invariants  Of a schedule that the verifier accepts, the result is one of the same collective,
//             and no later, no dearer in TB and in alpha, and not longer than before.
// Complexity  O(transfers log transfers), and for steps the distance that transfers move; memory
//             about 100 bytes a transfer.
// Threads     One.
// Reference   Pushing to and fro: "justification" of project schedules (Wiest, 1964).
#pragma once

#include <cstdint>

#include "tutti/sched/schedule.h"

namespace tutti::ten {

struct Compacted {
  Schedule schedule;
  int64_t num_dropped = 0, num_moved = 0;  // transfers; moved: in time
};

// `schedule` keeps S1 .. S4 and is one of `topology`.
Compacted Compact(const Topology& topology, const Schedule& schedule);

}  // namespace tutti::ten

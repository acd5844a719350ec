// Reroute: improves a timed all-gather or broadcast by sending again what was sent, the most urgent
// first, each chunk to each rank by whichever link brings it there first.
//
// Model       Every transfer is pushed as late as the end of the schedule, its link and those who
//             send its chunk on allow: that is how urgent it is. Then all are sent again, in order
//             of the times so found: for a chunk and a rank the in-link is taken over which it
//             arrives first, from ranks that have got it by then, in the first gap of the link that
//             is long enough. That is done a few times over; the best is kept.
// Invariants  Of a schedule that the verifier accepts, the result is one, and not later.
// Complexity  O(passes * transfers * (in-degree + log transfers)); memory 24 bytes a transfer.
// Threads     One.
// Reference   The pushing as in compact.h; list scheduling by latest start (Graham 1969, and many).
#pragma once

#include <cstdint>

#include "ten/input.h"

namespace tutti::ten {

// `schedule`: timed, of `input`, one unit a transfer, one transfer for each chunk and rank that
// lacks it.
// kCancelled.
Result<Schedule> Reroute(const Input& input, const Schedule& schedule, int32_t passes);

}  // namespace tutti::ten

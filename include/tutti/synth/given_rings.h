// Schedules over rings that somebody else has chosen, such as a policy (tutti/control/policy.h).
//
// Model       A ring is an order of all ranks, each joined to the next (and the last to the first) by a link. An equal
//             part of every shard goes round each ring: options.chunks, where given, is a multiple of their
//             number. Rings share no link: where several follow the same edge, the first takes the first
//             of its parallel links, the second the second, and so on.
// Errors      kInvalidArgument: no rings, one that lacks a rank or has one twice, links that are missing.
// Complexity  As `ring`: O(N^2) transfers a ring for all-gather, O(chunks * N) for broadcast.
// Reference   [mccs] 4.3 example 1: rings are the provider's
#pragma once

#include <span>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"
#include "tutti/synth/synthesizer.h"

namespace tutti {

Result<Schedule> ScheduleOverRings(const Topology& topology, const Collective& collective,
                                   std::span<const std::vector<NodeId>> rings,
                                   const SynthOptions& options);

}  // namespace tutti

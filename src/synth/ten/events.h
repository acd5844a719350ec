// MatchEvents: matches chunks to links as links become free and chunks arrive, on networks whose
// links take different times.
//
// Model       Every rank wants every chunk. A link carries one chunk at a time: it is busy for
//             hold_ps, and the chunk has arrived, and can be sent on, travel_ps after its start. At
//             one instant what arrives comes first; then the idle links choose, the cheapest first.
//             A rank keeps its chunks in order of arrival and each link a cursor into its tail's
//             list, as in rounds.h.
// Waiting     A slow link first brings what no rank behind faster links of its head has been
//             promised yet. The paper's rule never waits: it would also take what a faster link is
//             about to bring. Here a slow link takes such a chunk only when it arrives before the
//             head's faster links could have brought all that the head lacks.
// Choice      By a policy (policy.h).
// Complexity  O((links * chunks + deliveries * log links) * tiers); memory as rounds.h says, plus a
//             row of bits for every group of ranks joined by faster links.
// Threads     One.
// Reference   [tacos] section IV.F "TACOS for Heterogeneous Networks".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ten/event_loop.h"
#include "ten/link_time.h"
#include "ten/policy.h"
#include "ten/switched_events.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::ten {

struct EventsProblem {
  const Topology& topology;        // no switches; must outlive the run
  std::span<const NodeId> source;  // of each chunk
  std::span<const LinkTime> time;  // of each link
  const Policy& policy;            // must outlive the run
  size_t window = 1024;            // of the oldest chunks among which it chooses
  bool waits = true;               // false: the paper's rule
  // Seed of the policy, and of the order in which links of one cost choose at one instant; 1: by id.
  uint64_t seed = 1;
};

// Calls `sink` for every transfer (may be empty); when the last chunk has arrived. Gives up, with
// `max_ps` + 1, when that is later than `max_ps`. kCancelled.
Result<int64_t> MatchEvents(const EventsProblem& problem, int64_t max_ps, const SendSink& sink);

// The same through switches: the problem is that of paths.network(), with times as in paths.time().
// The sink gets every hop, as the real link; their starts do not ascend.
Result<int64_t> MatchThroughSwitches(const EventsProblem& problem, const SwitchPaths& paths,
                                     SwitchUse use, int64_t max_ps, const SendSink& sink);

}  // namespace tutti::ten

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
// Complexity  O((links * chunks + deliveries * log links) * tiers); memory as rounds.h says, plus a
//             row of bits for every group of ranks joined by faster links.
// Threads     One.
// Reference   [tacos] section IV.F "TACOS for Heterogeneous Networks".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ten/event_loop.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::ten {

// Which of the chunks that its head lacks a link takes.
enum class ChunkChoice : uint8_t {
  kOldest,  // the first to have arrived at its tail
  kRarest,  // the one on its way to, or at, the fewest ranks; the oldest of these
  kRandom,  // [tacos]
};

struct EventsProblem {
  const Topology& topology;        // no switches; must outlive the run
  std::span<const NodeId> source;  // of each chunk
  std::vector<LinkTime> time;      // of each link
  ChunkChoice choice = ChunkChoice::kRarest;
  size_t window = 1024;  // oldest chunks among which it is chosen
  bool waits = true;     // false: the paper's rule
  uint64_t seed = 1;     // the order of links of one cost that choose at one instant;
                         // 1: by id
};

// Calls `sink` for every transfer (may be empty); when the last chunk has arrived. Gives up, with
// `most_ps` + 1, when that is later than `most_ps`. kCancelled.
Result<int64_t> MatchEvents(const EventsProblem& problem, int64_t most_ps, const SendSink& sink);

}  // namespace tutti::ten

// MatchRounds: matches chunks to links, round after round, on a network whose links all take the
// same time for a chunk.
//
// Model       Every rank wants every chunk. In a round each link carries at most one chunk, which
//             its tail holds since before the round; no chunk comes to a rank twice. A rank keeps
//             its chunks in order of arrival, and every link keeps a cursor into its tail's list:
//             what lies before the cursor is held at the head already. A link takes the first
//             chunk from its cursor on that its head lacks, so chunks travel first come first
//             served, and a cursor passes each entry once in the whole run.
// Complexity  O(links * chunks) steps of a cursor altogether, about one a delivery and in-link,
//             each a bit of the receiver's row. Memory ranks * chunks * (2 or 4 bytes + 1 bit).
// Threads     Receivers of a round in parallel; the result does not depend on their number.
// Reference   [tacos] section IV, algorithms 1 and 2; deviation: arrival order with cursors in
//             place of a random choice among all unsatisfied pairs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::ten {

// Which in-link of a receiver chooses first in a round. On grids neighbours' numbers differ by the
// stride of their dimension, so the first two treat all ranks alike there.
enum class LinkOrder : uint8_t {
  kFarthestNumber,  // the tail whose number differs most from the receiver's
  kNearestNumber,
  kScarcestTail,  // tails with few in-links first: they have the least to offer
  kMinBacklog,    // links with the fewest chunks from the cursor on first
  kSeeded,        // one random order of the ranks, by the seed
};

struct RoundsProblem {
  const Topology& topology;        // no switches; must outlive the run
  std::span<const NodeId> source;  // of each chunk
  LinkOrder order = LinkOrder::kFarthestNumber;
  uint64_t seed = 1;  // kSeeded
};

inline constexpr uint32_t kNoChunk = 0xffffffff;

// What came over each in-link in a round, receiver after receiver, in order of InLinks().
using RoundSink = std::function<Status(int32_t round, std::span<const uint32_t> chunk_of_slot)>;

// The link of each slot.
std::vector<LinkId> InLinkSlots(const Topology& topology);

// No schedule whose rounds carry one chunk a link has fewer: every rank is reached, and every rank
// takes in what it lacks.
int32_t FewestRounds(const Topology& topology, std::span<const NodeId> source);

// Calls `sink` for every round (may be empty); the number of rounds. Gives up, with `most` + 1,
// once more than `most` rounds were needed. kCancelled, or what the sink says.
Result<int32_t> MatchRounds(const RoundsProblem& problem, int32_t most, const RoundSink& sink);

}  // namespace tutti::ten

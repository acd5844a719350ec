// Bandwidth-optimal all-gather schedules in whole chunks, by local search.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "programs.h"
#include "small_digraph.h"

namespace tutti::stored_search {

// Looks for `chunks` trees a node such that in step t every link carries just loads[t - 1] of them;
// the loads add up to chunks (N - 1) / d. Trees are taken out of overloaded links one at a time and
// put back the cheapest way, where a link that is full costs as much as it has been in the way so
// far. nullopt: `rounds` such exchanges did not do. Same arguments, same answer.
std::optional<std::vector<Tree>> FindWholeChunks(const SmallDigraph& graph, int chunks,
                                                 const std::vector<int>& loads, uint64_t seed,
                                                 int64_t rounds);

}  // namespace tutti::stored_search

// MatchBlocks: matches chunks that each want one rank to links, as links become free: all-to-all,
// gather, scatter.
//
// Model       A chunk moves only to nodes that are nearer to its destination, by the time that a
//             chunk takes on the links between; by default only along shortest paths. An idle link
//             takes, of the chunks waiting at its tail that it leads nearer, the one with the
//             longest path to go; the first to have arrived there of these. Which of several
//             shortest paths a chunk takes is so decided by which link is idle first.
// Complexity  O(hops of all chunks * ranks / 64), memory O(ranks * (nodes + links / 8) + chunks).
// Threads     One.
// Reference   [tacos] section IV for the network in time; its rule, which sends only what a
//             neighbour wants, makes no all-to-all between ranks that are not linked.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ten/event_loop.h"

namespace tutti::ten {

struct BlockChunk {
  NodeId source, destination;
};

struct BlocksProblem {
  const Topology& topology;  // must outlive the run; a switch passes on what it is given
  std::span<const BlockChunk> chunks;
  // How long a chunk takes on a link.
  std::function<LinkTime(LinkId link, uint32_t chunk)> time;
  // The same of a chunk of the usual size, by link: what is near.
  std::vector<int64_t> usual_ps;
  bool detours = false;  // also paths that are not shortest, but lead nearer
  uint64_t seed = 1;     // the order of links that choose at one instant; 1: by id
};

// As MatchEvents.
Result<int64_t> MatchBlocks(const BlocksProblem& problem, int64_t max_ps, const SendSink& sink);

}  // namespace tutti::ten

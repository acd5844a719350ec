// The all-gather schedules of graphs that breadth-first broadcast does not serve at full
// bandwidth, as data: a tree a chunk.
//
// Model       Rank r's shard is cut into `chunks` equal chunks; chunk c of it goes along the tree
//             trees[r * chunks + c]. A tree is a pair of characters a rank, in order of ranks: the
//             rank it receives the chunk from, in base 16, and the step, counted from 1; "--" for
//             the root. Every link of the graph is in some tree.
// Invariants  In each step every link carries equally many chunks, and no rank receives a chunk
//             twice, so that TB = (N - 1) / N.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tutti::stored {

struct StoredTrees {
  std::string_view graph;  // its expression
  int32_t ranks, steps, chunks;
  std::span<const std::string_view> trees;
};

std::span<const StoredTrees> AllStoredTrees();

}  // namespace tutti::stored

// PackTrees: for every chunk of an all-reduce a tree in which it is reduced to a root and one by
// which it is spread from there, so that no link carries much more than another.
//
// Model       A chunk need not be reduced at the rank that owns its shard: trees reach what no
//             reduce-scatter + all-gather does where ranks have unequal links. On networks where
//             every link has an equal twin, one tree serves both directions: each of its cables carries
//             the chunk once in each direction. There the least possible load is
//             2 M max over partitions (parts - 1) / capacity between the parts, which is
//             Nash-Williams' and Tutte's limit of packing trees and a bound of all-reduce at once.
// Method      Chunk after chunk takes a light tree, where a link weighs the more the closer its
//             load is to the largest; then, pass after pass and ever more sharply, every chunk
//             gives its tree back and takes a new one. A tree grows from its root by the next
//             lightest link (Prim), or also by how far from the root that leads (towards Dijkstra):
//             `depth_weight`.
// Complexity  O((passes + 1) * chunks * links log links).
// Threads     One. Integers only.
// Reference   The paper has no overlap of reducing and spreading ([tacos] IV.E concatenates).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti::ten {

struct ChunkTrees {
  NodeId root;
  // For every rank but the root: the link to its parent, and the link it receives the result by.
  std::vector<LinkId> up, down;
};

struct PackingProblem {
  const Topology& topology;                    // no switches; must outlive the run
  std::optional<std::vector<LinkId>> reverse;  // of each link, where all have a twin
  std::vector<NodeId> root;                    // of each chunk
  std::vector<int64_t> hold_ps;                // how long a chunk holds each link
  int32_t depth_weight = 4;                    // in sixteenths
  int32_t passes = 20;
  uint64_t seed = 1;
};

// By chunk. kCancelled.
Result<std::vector<ChunkTrees>> PackTrees(const PackingProblem& problem);

}  // namespace tutti::ten

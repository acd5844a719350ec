// The schedule of a forest: chunks reduced up and spread down their trees, each link doing its
// messages one after the other.
//
// Model       A root's shard (or the whole buffer, where roots have unlike numbers of trees) is cut
//             into one stretch a tree, as long as the tree has copies, and each stretch into chunks. A chunk is a list of messages: one a link, where paths
//             through switches take one a hop. A switch holds one value of a reduction at a time:
//             the next sum of the same chunk enters it after the last one has left, unless it is one
//             that reduces: then branches end at it as at a rank. What is spread
//             may enter a switch several times, once for each branch that passes it: nothing is
//             copied there.
// Method      ten/link_jobs.h, with more and more chunks while that ends earlier.
// Cost        The bandwidth part of the optimum, and about (height of a tree) * (time of a chunk on
//             a slow link) more; every message takes its link's alpha.
// Errors      kResourceExhausted: more messages than memory; kCancelled.
#pragma once

#include <vector>

#include "forest/routed_trees.h"
#include "tutti/base/result.h"
#include "tutti/synth/synthesizer.h"

namespace tutti::forest {

struct Forest {
  std::vector<RoutedTree> up, down;      // to reduce (as Turned() leaves them); to spread
  int64_t trees_up = 1, trees_down = 1;  // [k] a root, or a shard where roots differ
  // Roots have unlike numbers of trees: trees are numbered over the whole buffer, root after root,
  // and each carries the stretch of its numbers, whichever shards that is of.
  bool over_all_shards = false;
};

// Empty `up`: nothing is reduced; empty `down`: nothing is spread.
Result<Schedule> TimeForest(const Topology& topology, const Collective& collective,
                            const Forest& forest, const SynthOptions& options);

}  // namespace tutti::forest

// All-reduce over several spanning trees at once: every tree reduces its part to its root and
// spreads it again, chunk after chunk.
//
// Model       The one shard is cut into equal parts, one a tree, and each part into chunks. A chunk
//             goes up the reverse links of its tree, children before parents, and down its links
//             again as soon as the root has all of it, while the next chunks still come up. A link
//             carries one chunk a step: chunk after chunk, each transfer takes the first free step
//             of its link after the sender has what it sends.
// Complexity  O(transfers), and once more the steps a link is found busy in.
// Reference   [tacos] section VI.5 (two trees of C-Cube), section VII (three trees of TTO).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/synth/synthesizer.h"

namespace tutti::baselines {

struct Tree {
  NodeId root;
  std::vector<LinkId> down;  // spans all ranks from the root, parents before children
};

// Chunk k of part t goes over alternatives[k % alternatives.size()][t]; the same number of trees
// each. options.chunks, or what pays for the size (PipelineChunks), is the number of all chunks.
// kInfeasible: another collective than all-reduce over one shard, switches, a link of a tree
// without a reverse; kInvalidArgument: chunks that are no multiple of the trees.
Result<Schedule> MakeTreeAllReduce(std::string_view algorithm, const Topology& topology,
                                   const Collective& collective, const SynthOptions& options,
                                   const std::vector<std::vector<Tree>>& alternatives);

}  // namespace tutti::baselines

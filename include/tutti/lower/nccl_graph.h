// Schedules as NCCL graph XML (NCCL_GRAPH_FILE): the orders of GPUs along which NCCL's rings and
// trees run.
//
// Model       A schedule is rings where every chunk goes round one Hamiltonian cycle of the ranks
//             (or a part of it; reductions may run against the copies, as reversed all-gathers do),
//             and trees where every chunk goes along a tree of all ranks that is a path of the GPUs
//             within each box, from where the box is entered. Other boxes hang on the first or
//             second GPU of a path, as one of NCCL's three patterns says, at most two; which box
//             hangs on which is not in the format: NCCL makes two binary trees of the boxes by
//             itself, and each path serves both. Each order that occurs is a channel, in proportion
//             to the chunks that it carries. A file is of one box, of its GPUs by their number
//             there; a ring has to enter each box once.
// Units       Speeds in GB/s (10^9), of a channel: that of its slowest hop, which channels share.
// Complexity  O(shards * units * ranks) time and memory.
// Errors      kInfeasible: the rank or box at which a chunk's way is no such ring or tree, or trees
//             of two patterns; more than 32 channels. kInvalidArgument: boxes that do not fit.
// Reference   docs/formats/nccl-graph.md
#pragma once

#include <cstdint>
#include <string>

#include "tutti/base/result.h"
#include "tutti/sched/schedule.h"

namespace tutti {

struct NcclGraphOptions {
  int32_t box_ranks = 0;  // ranks per box, numbered box by box; 0: one box
  int32_t box = 0;        // whose file
  int32_t nics = 0;       // a box, of which GPU g takes the (g * nics / GPUs)-th; 0: one a GPU
  std::string path_intra = "NVL", path_inter = "PIX";  // NCCL's names of path classes
};

struct NcclGraph {
  std::string xml;
  // What the file does not hold: the trees' joins of boxes, where they are not NCCL's own.
  std::string note;
};

Result<NcclGraph> ToNcclGraph(const Topology& topology, const Schedule& schedule,
                              const NcclGraphOptions& options = {});

}  // namespace tutti

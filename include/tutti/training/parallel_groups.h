// The networks that the groups of a hybrid-parallel job communicate over.
//
// Model       Replicas are blocks of `tensor` consecutive ranks; a block is a tensor group. Ranks
//             at the same place in their blocks are a data group. All groups of a kind run the same
//             collective at the same time, so each gets what is its own: its ranks, the links
//             between them, and switches (several that are linked count as one) that serve no rank
//             of another group. Groups of a kind must be alike in that.
// Numbers     Ranks and switches of a group keep their order. A torus or mesh that is cut at a
//             dimension (tensor is the product of its last dimensions) leaves a torus or mesh.
// Errors      kInvalidArgument: tensor < 1 or no divisor of the ranks. kInfeasible: a group is not
//             connected by what is its own, or two groups differ; names them.
// Complexity  O(n + m log m) for each kind.
#pragma once

#include <cstdint>
#include <optional>

#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct ParallelGroups {
  std::optional<Topology> tensor, data;  // none: groups of one rank
};

Result<ParallelGroups> MakeParallelGroups(const Topology& topology, int64_t tensor);

}  // namespace tutti

// Groups of ranks as text, and the order in which the ranks of a job lie on those of a network.
//
// Format      A group is a list of ranks and ranges, `0-7,12,16-30/2`. Groups are separated by semicolons or
//             lines; what follows # on a line is left out. Instead of a list:
//               every=S       S groups, those of the ranks r, r + S, r + 2 S, ...
//               blocks=K      groups of K ranks in a row
//               axis=D        on a grid (torus, mesh): the ranks that differ in coordinate D only, of
//                             every line; axis=D+E+.. in those coordinates
//             S and K divide the number of ranks.
// Placement   A list of network ranks, one a line or as a group: rank i of the job lies on the i-th. With a
//             placement groups are of ranks of the job.
// Errors      kInvalidArgument: names the place and what was accepted.
// Complexity  O(characters + ranks).
#pragma once

#include <string_view>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/base/result.h"
#include "tutti/topo/topology.h"

namespace tutti {

using RankGroups = std::vector<std::vector<NodeId>>;

// `num_ranks`: of the job. Structure (axis) is that of the topology.
Result<RankGroups> ParseGroups(std::string_view text, const Topology& topology, int32_t num_ranks);
// One list.
Result<std::vector<NodeId>> ParseRankList(std::string_view text, int32_t num_ranks);
// Lines or commas; each rank at most once.
Result<std::vector<NodeId>> ParsePlacement(std::string_view text, const Topology& topology);

// All ranks, each behind the one before it that a message of `size_bytes` reaches soonest: from rank 0
// always on to the nearest that is left, by alphas and bandwidths along the fastest way. What lies close in
// the job then lies close in the network. Ties go to the smaller rank. O(ranks (links log links)).
std::vector<NodeId> NearestOrder(const Topology& topology, int64_t size_bytes);

}  // namespace tutti

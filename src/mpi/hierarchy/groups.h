// Groups: the ranks that share a node, a socket, a memory domain or a cache; what the
// hierarchical algorithms and the model of costs know of the machine.
//
// Model       levels[l][rank] is the group of a rank at level l, finest level first, nodes last.
//             All ranks together are no level of their own. Groups may hold unequal numbers of
//             ranks, in any order of ranks.
// Invariants  A group lies inside one group of the next level; groups are numbered from 0 in the
//             order of their smallest rank; no level but the nodes equals the next or holds single
//             ranks only.
// Complexity  FindGroups is collective: a split of the communicator, then 20 bytes per rank
//             gathered and broadcast; once per communicator.
// Errors      An MPI error code.
#pragma once

#include <mpi.h>

#include <span>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"

namespace tutti::mpi {

struct Groups {
  int size = 0;
  std::vector<std::vector<int>> levels;

  friend bool operator==(const Groups&, const Groups&) = default;
};

// Levels as found (any group numbers, a level that knows no group of some rank has -1 there and is
// left out), made to keep the invariants: ranks share a group when they share it at this level and
// at all coarser ones.
Groups NestedGroups(int size, const std::vector<std::vector<int>>& levels);

// The node of every rank: groups.levels.back(), or one node when there is no level.
std::vector<int> NodesOf(const Groups& groups);

// Levels of consecutive ranks: "32" for nodes of 32 ranks, "8,32" for sockets of 8 in nodes of 32;
// at most four levels, each a multiple of the one before.
Result<std::vector<int>> ParseRanksPerGroup(std::string_view text);

// Groups of consecutive ranks, the last of a level holding what is left.
Groups GroupsOfConsecutiveRanks(int size, std::span<const int> ranks_per_group);

// The groups of the ranks of `communicator`: nodes by what ranks share memory, and below them
// sockets, memory domains and last-level caches when every rank is bound inside one. Where rank 0
// has TUTTI_RANKS_PER_NODE in its environment with what ParseRanksPerGroup accepts, that instead,
// of the ranks of MPI_COMM_WORLD (simulations, tests): a part of the world lies on its nodes as it
// does; nonsense there is ignored. Collective.
int FindGroups(MPI_Comm communicator, Groups* groups);

}  // namespace tutti::mpi

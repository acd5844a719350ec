// A Hamiltonian ring by joining the cycles of a cycle cover.
//
// Model       A perfect matching of ranks to the ranks they send to covers the network by cycles.
//             Two cycles with links u -> v and x -> y become one where u -> y and x -> v exist. On
//             line digraphs (kautz, debruijn) this always ends in one cycle; elsewhere it may fail.
// Complexity  Matching O(N * m) at worst, joining O(m * in-degree) a round.
// Threads     One thread.
#pragma once

#include <vector>

#include "classic/link_index.h"
#include "tutti/base/random.h"
#include "tutti/topo/topology.h"

namespace tutti::classic {

// Over links not `used`. The order of ranks, or empty when none was found.
std::vector<NodeId> JoinCycleCover(const Topology& topology, const LinkIndex& index,
                                   const std::vector<bool>& used, Random& random);

}  // namespace tutti::classic

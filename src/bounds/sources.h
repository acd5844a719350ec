// The ranks from which a collective's paths must be looked at: one of each kind where the network's
// symmetry makes others repeat it.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/coll/collective.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct Source {
  NodeId rank{0};
  int64_t count = 1;  // ranks that it stands for, itself included
};

// The root; every rank that a demand matrix tells apart; else the orbits of the ranks, where one
// search a rank would cost more than finding them.
std::vector<Source> SourcesOf(const Topology& topology, const Collective& collective);
std::vector<Source> EveryRank(const Topology& topology);

}  // namespace tutti

// What a file says of its network beside nodes and links, checked against the links: a file may
// have been edited by hand.
#pragma once

#include "tutti/topo/topology.h"

namespace tutti::topo {

// `topology` with what holds of its origin. An expression of other links is dropped, and a name
// that is one becomes "modified from NAME"; of other bandwidths, alphas or host limits it stays,
// and the name tells. A grid must be the network's neighbours and no others; what it was unwound
// from must have switches and let as much into and out of every rank. An expression that names
// files is not looked into.
Topology CheckClaims(Topology topology);

}  // namespace tutti::topo

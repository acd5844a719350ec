// A picture of a network as one SVG file: no script, no request to anywhere, for papers and pages.
//
// Model       Nodes stand where the network's structure puts them (node_places.h in src/page). All
//             links between two nodes are one line, of a colour and width by what they carry each
//             way together, which the legend says; those of one direction end in an arrow. Networks
//             above kMaxNodesDrawn nodes or kMaxLinksDrawn links are drawn as groups of nodes.
// Invariants  The same network gives the same bytes on every machine. Names are text, never markup.
// Complexity  O(nodes^2) at most, bounded by kMaxNodesDrawn.
#pragma once

#include <cstdint>
#include <string>

#include "tutti/topo/topology.h"

namespace tutti {

inline constexpr int32_t kMaxNodesDrawn = 1'024, kMaxLinksDrawn = 16'384;

std::string NetworkSvg(const Topology& topology);

}  // namespace tutti

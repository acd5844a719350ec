// What can be read off a topology: hops, reverse links, its transpose.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tutti/base/ids.h"
#include "tutti/graph/farthest.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct HopStatistics {
  int32_t diameter = 0;    // most hops from one of the sources to a rank
  int64_t total_hops = 0;  // sum over all (source, rank)
};

// Hops between ranks: links on a shortest way, so one switch between two ranks makes two hops. One
// BFS a source, in parallel: O(sources (n + m)). Without sources, from every rank.
HopStatistics CountHops(const Topology& topology);
HopStatistics CountHops(const Topology& topology, std::span<const NodeId> sources);
int32_t Diameter(const Topology& topology);

// The most hops from one of the sources to a rank. Exact, but where searches would look at more
// than `max_visits` nodes and links even after those that graph/farthest.h leaves out.
FarthestRange LimitDiameter(const Topology& topology, std::span<const NodeId> sources,
                            int64_t max_visits);

// The cables: each link u -> v with the link v -> u that is its other half. Of parallel links those
// with equal bandwidth and alpha come together first; a link without a partner stands alone.
// Ordered by `there`, the half with the smaller id. O(m log m).
struct Cable {
  LinkId there{0};
  std::optional<LinkId> back;
};
std::vector<Cable> CablesOf(const Topology& topology);

// For every link the opposite one of the same bandwidth and alpha, one to one; nullopt when a link
// has none. Self-loops are their own reverse.
std::optional<std::vector<LinkId>> ReverseLinks(const Topology& topology);
bool IsBidirectional(const Topology& topology);

// Every link turned around; nodes, names and grid stay. `link_map`, when given, receives for each
// link of the result the link of `topology` that it came from.
Topology TransposeTopology(const Topology& topology, std::vector<LinkId>* link_map = nullptr);

// The links out of every node in the order (head, bandwidth, alpha), as networks from expressions
// have them. `link_map`, when given, receives for each link of the result the link that it was.
bool HasOrderedLinks(const Topology& topology);
Topology OrderLinks(const Topology& topology, std::vector<LinkId>* link_map = nullptr);

}  // namespace tutti

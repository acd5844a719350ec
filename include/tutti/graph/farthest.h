// How far two nodes can be apart, from fewer searches than one a node.
//
// Model       Distances from `sources` to targets; every source is a target, too. Distances obey
//             d(x, y) <= d(x, u) + d(u, y), so that a search from u and one to u limit what is
//             farthest from every source x: d(x, u) + farthest(u). A few such pairs of searches,
//             from where the limits are largest and from the middle by turns, leave out all
//             sources that cannot be at the ends of the longest distance, which is nearly all of
//             them where a network has ends; the others are searched from one by one.
// Complexity  2 x 8 searches, then one a source that is left, in parallel; where these are more
//             than `max_searches`, 16 of them. Up to 256 sources all of them are searched from.
// Exactness   Both ends of the range are proven; the same on any machine and number of threads.
// Reference   [Takes, Kosters 2011] "Determining the diameter of small world networks"; ours has
//             links with directions and lengths, and stops at a number of searches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tutti/base/ids.h"

namespace tutti {

// The largest distance lies between both; exact where they are equal.
struct FarthestRange {
  int64_t least = 0, most = 0;
};

struct DistanceSearches {
  // The largest distance from a node to a target. Each thread makes a search of its own, once for
  // many nodes.
  std::function<std::function<int64_t(NodeId)>()> make_farthest_from;
  // By node, of the sources at least: the distances to a source. Without it each source is searched
  // from.
  std::function<std::vector<int64_t>(NodeId)> distances_to;
};

// Where CancelRequested() the range is meaningless. Without sources it is 0 to 0.
FarthestRange FindFarthest(std::span<const NodeId> sources, const DistanceSearches& searches,
                           int64_t max_searches);

}  // namespace tutti

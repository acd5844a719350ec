// All-reduce by trees whose roots differ: how much of the buffer is reduced at which rank, and how
// the links are shared between reducing and spreading.
//
// Model       Root r has k_r trees to reduce up and k_r to spread down, T in all; every link divides
//             its bandwidth between the two. All ranks with equal k is reduce-scatter and all-gather
//             at once, one rank alone reduce and broadcast; no choice of rates and trees is faster
//             than the best found here, up to rounding.
// Method      A linear program over rates and shares of links, with one row a cut: what enters a set
//             of ranks (spreading), or leaves it (reducing), is at least what the roots outside
//             start. Cuts are added where the last answer breaks them, found by one flow a rank.
//             Rates are then rounded to whole trees, and the links get the least whole numbers of
//             trees that suffice, tested by flows. Only the rounding is approximate: what comes out
//             is feasible in integers, and its time is exact.
//             Switches are on either side of a cut, as if they copied: whether they come out of the
//             shares is for splitting.h to say.
// Complexity  Some tens of linear programs of 2 links + ranks columns.
// Reference   [forestcoll] appendix on all-reduce; cuts as Edmonds' condition (tree_network.h).
#pragma once

#include <optional>
#include <vector>

#include "forest/tree_network.h"
#include "tutti/base/result.h"

namespace tutti::forest {

struct RootRates {
  TreeNetwork up, down;       // `up` on the transposed network; trees_of is the same for both
  Rational seconds_per_byte;  // of the buffer: the busiest link's
};

// `link_map`: link l of the transpose is link_map[l] of the topology. The trees are a multiple of
// `shards` in all. Nothing where the network
// is too large for it, has host limits, or no rates are found. kCancelled.
Result<std::optional<RootRates>> FindRootRates(const Topology& topology, const Topology& transpose,
                                               const std::vector<LinkId>& link_map, int64_t shards);

}  // namespace tutti::forest

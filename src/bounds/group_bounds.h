// Bounds of a collective that is done within groups of ranks.
//
// Method   One group: the bounds of the network in which the other ranks are switches, or gone
//          (topo/group_network.h). Several at once: no group is faster than alone, and what all of them
//          need of the same links adds up: over every cut that is looked at, and over all links. Of
//          all-to-all it is the concurrent flow of all pairs of all groups, exactly.
//          That a switch reduces nothing is used by none of the limits, so that they hold for ranks that
//          reduce what they pass on.
// Cuts     Each group's own tightest one, single ranks, and the first so many ranks in order.
#pragma once

#include "tutti/base/result.h"
#include "tutti/bounds/bounds.h"

namespace tutti {

// `collective` has groups. kInvalidArgument: the network was unwound. kInfeasible: as MakeGroupNetwork.
Result<Bounds> ComputeGroupBounds(const Topology& topology, const Collective& collective);

// A rate on the network of Joined(), in the unit of `topology` and of pairs of the groups.
Rational RateOfGroups(const Topology& topology, const Collective& collective,
                      const Topology& joined, const Rational& rate);

}  // namespace tutti

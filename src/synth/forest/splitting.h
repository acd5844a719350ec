// Switches taken out of a TreeNetwork exactly: trees through a switch become trees over lanes
// between its neighbours, with no loss of trees.
//
// Model       To split g trees off a switch w is to replace g of a lane (u, w) and g of (w, t) by a
//             lane (u, t) whose paths are u .. w .. t. It is allowed while FlowsSuffice() stays
//             true. A switch forwards and copies nothing: what the forest needs of a real link is
//             at most what the link carries, also where several branches of one tree pass the same
//             switch.
// Method      First all switches together and then one at once, each spread evenly over its neighbours in other parts of
//             the network (other boxes, preferably at the same place in theirs), which one test
//             accepts or not. Else pair after pair, each with the largest g that every flow
//             allows: a flow that lacks d trees takes d off g. Where every node takes in what it
//             gives out, all of a switch can be split off (Frank, Jackson); what is left over
//             elsewhere is dropped when the flows do not need it.
// Complexity  Of a switch with d neighbours, N ranks: one test, or d^2 of them, N flows each.
// Errors      kInfeasible: the flows need what cannot be split off (unbalanced networks only).
// Reference   Jackson, "Some remarks on arc-connectivity, vertex splitting, and orientation"
//             (1988); Bang-Jensen, Frank, Jackson (1995); [forestcoll].
#pragma once

#include "forest/tree_network.h"

namespace tutti::forest {

// Lanes between ranks only are left. `network` passes FlowsSuffice(), then and afterwards. kQuick:
// kInfeasible where very many pairs would have to be tried.
Status SplitSwitches(TreeNetwork& network, Effort effort = Effort::kAny);

}  // namespace tutti::forest

// The tight cuts of the collectives that a cut limits, by max-flow, exact.
//
// A cut is a set S of nodes that traffic must leave. Each function finds the S of its family with
// the largest (shards that must leave S) / (capacity out of S); `SmallestRootCut` with the least
// capacity, where one shard must leave whatever S is.
//
// Method      Newton's (Dinkelbach's) on the ratio p / q of the best cut in hand. It is the best
//             of all exactly when in the network with capacities p c and a supply of q at each rank
//             every rank can draw N q; a rank that cannot yields a cut with a larger ratio.
//             Ranks are tried one after the other, and a rank that can becomes a supply without
//             limit: cuts that part it from the supplies are no concern any more, the others do
//             not change, and the next rank finds its flow next door. So the sweep costs little
//             more than reading the network where the naive one costs N whole flows.
// Example     uniring(1,8): all but one rank hold 7 shards and have one link out: 7. With p = 7,
//             q = 1 every rank draws 8: 7 over its link and 1 of its own.
// Complexity  Each violated cut raises the ratio; at most O(N + number of distinct ratios) flows.
// Reference   [direct-connect] C.2 has the single-rank case.
#pragma once

#include <optional>
#include <vector>

#include "cut_network.h"

namespace tutti {

struct Cut {
  std::vector<bool> inside;
  WideCapacity shards_out = 0;
  WideCapacity capacity_out = 0;  // in the network's unit
};

// The same cut seen in the transposed network.
Cut Flipped(Cut cut);

// All of these need at least two ranks.
// Over S that miss a rank: ranks in S / capacity out of S.
Cut AllGatherCut(const CutNetwork& network);
// Over S that hold `root` and miss a rank: 1 / capacity out of S.
Cut SmallestRootCut(const CutNetwork& network, NodeId root);
// Over S that hold `root`: ranks outside S / capacity out of S.
Cut ScatterCut(const CutNetwork& network, NodeId root);

}  // namespace tutti

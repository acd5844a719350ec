// TightestPartition: the partition of the ranks that limits all-reduce most.
//
// Model       Contract each of k parts. When the first part knows every contribution between its
//             ranks, each other part has sent something out: k - 1 crossings. No other part knows
//             everything by then, so each must still be told something: k - 1 more. A byte
//             therefore crosses between parts 2 (k - 1) times, and all-reduce takes at least
//             2 (k - 1) M / (capacity between parts). Every rank a part by itself gives the limit
//             by total capacity. Where every link has an equal twin the best partition is what
//             pipelined trees reach (Nash-Williams and Tutte: trees packed into cables).
// Switches    They forward and copy but do not add: what enters a part has the contributions of the
//             one rank that sent it, so the k - 1 parts that lack a result still sent k - 1
//             different things into parts, and k - 1 more must come in; one that leaves may be
//             copied on its way, so only what comes in counts. A part takes in no more than the
//             smallest cut between the other ranks and its own lets through, with switches on
//             either side.
// Method      Newton's on the ratio c / (k - 1) of the best partition in hand. A better one has
//             sum over parts of ((k - 1) capacity into the part - c) < -c; that sum is made as
//             small as it gets by the greedy algorithm for intersecting submodular functions,
//             which takes one node after the other and finds its share by one flow.
// Example     Four boxes of two ranks, 4 bytes/s within a box and 1 byte/s from each rank to the
//             next box and to the one before: all ranks apart 14 M / 48, boxes 6 M / 16.
//             Through switches: four boxes of eight ranks, each box on a switch at 300 bytes/s a
//             rank and the ranks of equal number on one at 25: boxes apart 6 M / (32 * 25).
// Complexity  A flow a rank and improvement of the ratio, of which there are few.
// Reference   Cunningham, Journal of the ACM 32 (1985); Frank and Tardos, polymatroids.
#pragma once

#include <vector>

#include "cut_network.h"

namespace tutti {

struct Partition {
  std::vector<int32_t> part_of_rank;
  int64_t num_parts = 0;
  WideCapacity capacity = 0;  // into the parts, in the network's unit
};

// Every rank a part by itself.
Partition EachAlone(const CutNetwork& network);

// What the parts can take in from each other, all together: from the ranks of other parts.
WideCapacity CapacityIntoParts(const CutNetwork& network, const Partition& partition);

// The smallest capacity / (num_parts - 1). At least two ranks.
Partition TightestPartition(const CutNetwork& network);

}  // namespace tutti

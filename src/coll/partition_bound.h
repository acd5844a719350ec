// TightestPartition: the partition of the ranks that limits all-reduce most.
//
// Model       Contract each of k parts. When the first part knows every contribution between its
//             ranks, each other part has sent something out: k - 1 crossings. No other part knows
//             everything by then, so each must still be told something: k - 1 more. A byte
//             therefore crosses between parts 2 (k - 1) times, and all-reduce takes at least
//             2 (k - 1) M / (capacity between parts). Every rank a part by itself gives the limit
//             by total capacity. Where every link has an equal twin the best partition is what
//             pipelined trees reach (Nash-Williams and Tutte: trees packed into cables).
// Method      Newton's on the ratio c / (k - 1) of the best partition in hand. A better one has
//             sum over parts of ((k - 1) capacity into the part - c) < -c; that sum is made as
//             small as it gets by the greedy algorithm for intersecting submodular functions,
//             which takes one node after the other and finds its share by one flow.
// Example     Four boxes of two ranks, 4 bytes/s within a box and 1 byte/s from each rank to the
//             next box and to the one before: all ranks apart 14 M / 48, boxes 6 M / 16.
// Complexity  A flow a rank and improvement of the ratio, of which there are few.
// Reference   Cunningham, Journal of the ACM 32 (1985); Frank and Tardos, polymatroids.
#pragma once

#include <vector>

#include "cut_network.h"

namespace tutti {

struct Partition {
  std::vector<int32_t> part_of_node;
  int64_t num_parts = 0;
  WideCapacity capacity = 0;  // between parts, in the network's unit
};

// The smallest capacity / (num_parts - 1). At least two ranks, no switches.
Partition TightestPartition(const CutNetwork& network);

}  // namespace tutti

// Algorithm: the names and parameters of the all-to-all-v algorithms, as users write them
// (TUTTI_ALLTOALLV=tuna:r=8, `tutti mpi tune`, the C interface). No MPI here: the executor
// (tutti/mpi), the cost model and the command line share this vocabulary.
//
// Text        NAME or NAME:KEY=VALUE,... with the keys the method takes:
//               auto                       chosen call by call from predicted and measured times
//               mpi                        the native algorithm
//               linear                     all requests at once, in ascending order of ranks
//               pairwise                   round k: send to rank + k, receive from rank - k, one at
//                                          a time
//               xor                        round k: exchange with rank ^ k (ranks without a partner
//                                          sit out)
//               spread-out                 all requests at once, in round-robin order
//               scattered:b=32             spread-out in batches of b requests (block_count)
//               two-phase-bruck            radix 2, metadata then data in every round
//               padded-bruck               radix 2, blocks padded to the largest
//               tuna:r=8                   tunable radix, 2 <= r; r of at least P is one round per
//                                          partner
//               coalesced:r=4,b=16         TuNA inside a node, then all blocks of a node pair in
//                                          one message
//               staggered:r=4,b=16         TuNA inside a node, then a message per block
//               multilevel:r=4,b=16        coalesced over more than two levels (socket, node, all)
//               shared:b=16                inside a node blocks go through memory that its ranks
//                                          share; between nodes a rank sends each node one message
//               shared-coalesced:b=16      the same, but few messages per pair of nodes, spread
//                                          over its ranks
// Units       r is a base, b counts requests in flight each way. 0 in a field: the method's
//             default, chosen by the executor.
// Errors      kInvalidArgument names the word and what is accepted.
// Reference   [tuna] sections II, III, IV.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"

namespace tutti::alltoallv {

enum class Method {
  kAuto,
  kMpi,
  kLinear,
  kPairwise,
  kXor,
  kSpreadOut,
  kScattered,
  kTwoPhaseBruck,
  kPaddedBruck,
  kTuna,
  kCoalesced,
  kStaggered,
  kMultilevel,
  kShared,
  kSharedCoalesced,
};
inline constexpr size_t kNumMethods = static_cast<size_t>(Method::kSharedCoalesced) + 1;

// A table with one row per method, in their order: checked when it is compiled, so that a method
// that was forgotten is an error there and not another algorithm in a run.
template <class Rows>
constexpr bool HasRowPerMethod(const Rows& rows) {
  size_t index = 0;
  for (const auto& row : rows) {
    if (static_cast<size_t>(row.method) != index++) return false;
  }
  return index == kNumMethods;
}

// How a method moves blocks.
enum class Family {
  kChosen,        // auto: as one of the others
  kNative,        // by the MPI library
  kDirect,        // each straight from its source to its destination
  kForwarding,    // over other ranks
  kHierarchical,  // inside nodes, then between them
  kSharedMemory,  // the same, inside nodes through memory
};

struct Algorithm {
  Method method = Method::kAuto;
  int radix = 0;        // of TuNA and the hierarchical forms
  int block_count = 0;  // of scattered and the hierarchical forms

  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};

Result<Algorithm> ParseAlgorithm(std::string_view text);

// The shortest text that ParseAlgorithm reads as this algorithm.
std::string ToString(const Algorithm& algorithm);

// "auto", "mpi", "linear", ... in the order of Method.
const std::vector<std::string_view>& MethodNames();

// The radix that TuNA runs with among so many ranks, from 2 to max(2, ranks). 0 stands for two
// digits: the smallest r with r * r at least `ranks`, near the best of middle sizes and never far
// off. The only place that says so: whoever runs, predicts or reports a radix asks here.
int RadixFor(int radix, int ranks);
// What 0 in block_count stands for.
inline constexpr int kDefaultBlockCount = 32;

// What it is on so many ranks: TuNA gets its radix; with one of at least `ranks` nothing is
// forwarded, and it is spread-out. Whoever runs or predicts it asks here.
Algorithm Resolved(const Algorithm& algorithm, int ranks);

Family FamilyOf(Method method);
bool TakesRadix(Method method);
bool TakesBlockCount(Method method);

}  // namespace tutti::alltoallv

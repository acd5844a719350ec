// CostModel: predicted seconds of every all-to-all-v algorithm on a cluster, and which is predicted
// to be fastest.
//
// Model       A message costs its sender send_s and its receiver receive_s of processor time, then
//             travels latency_s plus its bytes over the slower of two limits: what one rank can
//             move (flow_s_per_byte) and what all ranks of a node can move together
//             (node_s_per_byte, the NIC or the memory bus). `inside` holds between two ranks of a
//             node, `between` for ranks of two nodes. Messages in flight together cost one latency,
//             the processor time of the first, and then what is longer, processor or wire. Messages
//             of at most eager_bytes cost their sender eager_s_per_byte more: they are copied on
//             their way. Copies of blocks cost copy_s each and copy_s_per_byte. n blocks in flight
//             wait for the slowest rank: n mean + sqrt(n) spread bytes, the spread that of sizes
//             uniform around the mean. An algorithm is a sum of such phases, each linear in the
//             block size above a floor, so that its formula is worked out once for a communicator
//             and asked in nanoseconds.
// Example     TuNA of radix 2 on 4 ranks of one node has two digits, a round of 2 blocks each:
//             twice latency_s + send_s + receive_s + the wire time of 2 blocks; 2 + 2 blocks
//             gathered, 1 + 2 arrived blocks copied to their place, one block forwarded whose size
//             (1, 2 or 4 bytes) travels with it.
// Units       Seconds, bytes.
// Invariants  (numbered in the tests)
//               C1  rounds and blocks of TuNA are exact integers: blocks with digit z at position
//                   x, counted
//               C2  no prediction falls when a parameter of the model grows, nor when sizes do, but
//                   where messages get too long to be eager
//               C3  Best() is the smallest of what Seconds() says of the candidates
// Complexity  P ranks, Q of them on the largest node: a formula O(P) at most (TuNA O(Q + log P)),
//             tables O(P (Q + log P)); Best() O(candidates), some hundred at most, a few
//             microseconds.
// Threads     Immutable once made.
// Reference   [tuna] sections III, IV.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tutti/alltoallv/algorithm.h"
#include "tutti/base/result.h"

namespace tutti::tune {

using alltoallv::Algorithm;
using alltoallv::Method;

// Where figures come from: kCrowded were measured with more ranks on a machine than it has cores,
// so that they hold waiting for a core; kAssumed are those of a cluster nobody measured.
enum class Origin { kMeasured, kCrowded, kAssumed };
std::string_view Name(Origin origin);  // "measured", "crowded", "assumed"

struct PathCost {
  double latency_s = 0;
  double flow_s_per_byte = 0;  // what one rank sends or receives
  double node_s_per_byte = 0;  // what all ranks of a node send or receive together
  Origin origin = Origin::kMeasured;

  friend bool operator==(const PathCost&, const PathCost&) = default;
};

// Whose MPI_Alltoallv the method "mpi" is.
enum class Library { kOpenMpi, kMpich, kSmpi };
std::string_view Name(Library library);  // "openmpi", "mpich", "smpi"
Result<Library> ParseLibrary(std::string_view text);

struct CostModel {
  Library library = Library::kOpenMpi;
  PathCost inside = {};
  PathCost between = {};
  double send_s = 0;
  double receive_s = 0;
  double copy_s = 0;
  double copy_s_per_byte = 0;
  double eager_bytes = 0;  // of the longest message that is sent eagerly
  double eager_s_per_byte = 0;

  friend bool operator==(const CostModel&, const CostModel&) = default;
};

// A cluster nobody has measured: 100 Gbit/s per node, two microseconds between nodes. A copy moves
// 24 GB/s, of blocks in the processor's cache (22 to 38 measured); in simulation 8.
CostModel DefaultModel(Library library);

// Which ranks share a node; the largest node is where a call takes longest.
struct Placement {
  int ranks = 1;
  int nodes = 1;
  int largest_node = 1;     // [Q]
  int largest_socket = 0;   // 0: sockets are unknown
  bool consecutive = true;  // the ranks of every node are neighbours

  friend bool operator==(const Placement&, const Placement&) = default;
};

// `ranks` in nodes of `ranks_per_node`, the last may hold fewer. Both at least 1.
Placement EvenPlacement(int ranks, int ranks_per_node);
// node_of_rank[i]: any number that names the node of rank i.
Placement PlacementOf(std::span<const int> node_of_rank);

// Sizes of the blocks of one call, over all ranks.
struct BlockSizes {
  double mean_bytes = 0;
  double largest_bytes = 0;
};

// One round of TuNA: every rank sends `blocks` blocks to the rank `distance` away.
struct TunaRound {
  int64_t distance;
  int64_t blocks;

  friend bool operator==(const TunaRound&, const TunaRound&) = default;
};
// In the order they run. 2 <= radix; a radix of `ranks` or more is one round per partner.
std::vector<TunaRound> TunaRounds(int ranks, int radix);

struct Prediction {
  Algorithm algorithm;
  double seconds;
};

// The seconds of one algorithm as a function of the block sizes.
class Formula {
 public:
  double Seconds(const BlockSizes& sizes) const;

  // times (fixed_s + max(floor_s, bytes moved)), and the processor time of eager bytes: that of the
  // first message before, of the others in the floor.
  struct Phase {
    double times = 1, fixed_s = 0, floor_s = 0;
    double per_mean = 0, per_spread = 0, per_largest = 0;  // seconds per byte of each
    double per_size = 0;  // seconds for each byte that the size of a block takes in a message
    double sent_blocks = 0, message_blocks = 0;  // of a rank; of one message
  };
  void Add(const Phase& phase);

  Formula() = default;
  Formula(double eager_bytes, double eager_s_per_byte)
      : eager_bytes_(eager_bytes), eager_s_per_byte_(eager_s_per_byte) {}

 private:
  double eager_bytes_ = 0, eager_s_per_byte_ = 0;
  std::vector<Phase> phases_;
};

Formula MakeFormula(const CostModel& model, const Placement& placement, const Algorithm& algorithm);

class CostTables {
 public:
  CostTables(const CostModel& model, const Placement& placement);

  const CostModel& model() const { return model_; }
  const Placement& placement() const { return placement_; }

  // For any algorithm but auto. O(P) where its formula is not in the tables.
  double Seconds(const Algorithm& algorithm, const BlockSizes& sizes) const;

  // The fastest, the native algorithm among them.
  Prediction Best(const BlockSizes& sizes) const;

  // The fastest candidates, best first: at most `count`, at most `of_a_method` of one method; never
  // the native algorithm.
  std::vector<Prediction> Shortlist(const BlockSizes& sizes, size_t count,
                                    size_t of_a_method) const;

  size_t num_candidates() const { return candidates_.size(); }

 private:
  struct Candidate {
    Algorithm algorithm;
    Formula formula;
  };
  void KeepWinners(std::vector<Candidate> all);

  CostModel model_;
  Placement placement_;
  std::vector<Candidate> candidates_;  // the first is the native algorithm
};

}  // namespace tutti::tune

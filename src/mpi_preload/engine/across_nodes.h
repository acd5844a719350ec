// AcrossNodes: collectives of ranks on several nodes in stages: through the memory of each node, and by the MPI library
// between the first ranks of the nodes, its *leaders*.
//
// Model       All-reduce: reduced to each leader, all-reduced between leaders, broadcast on each node. Broadcast: from the
//             root to its node, from there to the other leaders, to their nodes. Barrier: a node's ranks, leaders, the
//             node's ranks. What other collectives do is bound by what passes between nodes, and stays the MPI library's.
// Order       Of reductions: nodes in the MPI library's order, within a node by rank.
// Invariants  All ranks make the same calls in the same order, with as many bytes.
// Errors      An MPI error code, of a reduction or of what passes between leaders.
// Threads     One at a time.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/node_collectives.h"
#include "interface.h"

namespace tutti::mpi::preload {

class AcrossNodes {
 public:
  static bool Does(Collective which) {
    return which == Collective::kAllreduce || which == Collective::kBcast ||
           which == Collective::kBarrier;
  }
  // Collective over `communicator`, whose rank r is on node nodes[r], numbered by their first ranks. Null on all ranks
  // where no node has two of them, or a node's ranks cannot share memory.
  static int Make(MPI_Comm communicator, int rank, std::span<const int> nodes,
                  std::unique_ptr<AcrossNodes>* made);
  ~AcrossNodes();
  AcrossNodes(const AcrossNodes&) = delete;
  AcrossNodes& operator=(const AcrossNodes&) = delete;

  int Barrier();
  int Broadcast(std::byte* data, int64_t bytes, int root);
  // `in` may be `out`.
  int AllReduce(const std::byte* in, std::byte* out, int count, const Elements& elements);

 private:
  AcrossNodes() = default;
  int Open(MPI_Comm communicator, int rank, std::span<const int> nodes);
  bool is_leader() const { return rank_in_node_ == 0; }
  int node_of(int rank) const { return nodes_[static_cast<size_t>(rank)]; }

  std::vector<int> nodes_;            // by rank
  std::vector<int> rank_in_node_of_;  // by rank
  int node_ = 0, rank_in_node_ = 0;
  MPI_Comm of_node_ = MPI_COMM_NULL, leaders_ = MPI_COMM_NULL;  // null: this rank is none
  std::unique_ptr<NodeCollectives> memory_;                     // null: alone on its node
};

}  // namespace tutti::mpi::preload

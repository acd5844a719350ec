// NodeMemory: memory that the ranks of a node share, a window of it for each, and a barrier among
// them.
//
// Model       One rank of the node makes an anonymous file in memory (memfd), the others open it
//             through /proc: no name that a killed program would leave behind, and no limit of
//             /dev/shm. A window is as large as it will ever be; pages come when they are first
//             written, by the rank whose window it is, so that they lie near it. Who can read the
//             file's name, which holds a random number, shares its memory: nothing else need be
//             asked. Where any rank of the communicator cannot, none uses it. It is disabled where
//             pages that come late could be refused (strict overcommit) or where a process may not
//             have so many addresses (ulimit -v).
//             In simulation all ranks are one process: a plain mapping, and a barrier of SimGrid
//             that takes ceil(log2 Q) times the host's property tutti_flag_seconds.
//             The barrier is a dissemination barrier over flags, a cache line per rank; with more
//             ranks than processors a counter, for which all ranks need to run once only. A rank
//             that waits polls, then lets others run and the MPI library make progress: a message
//             of the program that began before may be what another rank waits for.
// Complexity  Make is collective: a message to and from each rank of the node, an all-reduce; once
//             per communicator. Barrier: ceil(log2 Q) flags.
// Errors      An MPI error code; that there is no such memory is none.
// Threads     One per rank at a time.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tutti::mpi {

class NodeMemory {
 public:
  // `members`: the ranks of this node in `communicator`, the same list on each; `self`: this
  // rank's index in it. Collective over `communicator`; *memory is null on all ranks if any of them
  // cannot share. A window begins at a page; its bytes are 0 at first.
  static int Make(MPI_Comm communicator, const std::vector<int>& members, int self,
                  int64_t window_bytes, std::unique_ptr<NodeMemory>* memory);

  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  std::byte* window(int member) const { return windows_ + member * window_bytes_; }

  // Returns once all ranks of the node have called it as often as this one; what they wrote before
  // is seen after.
  void Barrier();

#ifndef TUTTI_MPI_SMPI
  // Returns once *word, which another rank of the node writes, is no less.
  void WaitFor(const std::atomic<uint64_t>& word, uint64_t least) const;
#endif
  // More ranks than processors: who waits should let others run.
  bool crowded() const { return crowded_; }

 private:
  struct Control;
  struct Flags;
  NodeMemory() = default;

  // What the first rank tells the others of the node, and the file as the others find it.
  struct Announcement;
  Announcement Create();
  bool Open(const Announcement& announced);
  bool Map(int file);
  Flags& flags(int member) const;
  bool IsFirst() const { return self_ == 0; }
  template <class IsOver>
  void WaitUntil(const IsOver& is_over) const;

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int members_ = 1;
  int self_ = 0;
  int64_t window_bytes_ = 0, control_bytes_ = 0;
  Control* control_ = nullptr;  // the begin of the mapping
  std::byte* windows_ = nullptr;
  uint32_t turn_ = 0;     // barriers so far
  bool crowded_ = false;  // more ranks than processors
};

}  // namespace tutti::mpi

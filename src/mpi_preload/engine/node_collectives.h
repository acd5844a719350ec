// NodeCollectives: collectives of ranks that all are on one node, through memory that they share.
//
// Model       Each rank has kRows rows in its window, which take turns. A *step* is one use of a row:
//             who has something to say writes it there and posts the step's number, who needs it
//             waits for that number and reads. A call takes one step, or as many as its bytes fill
//             chunks; then a rank fills the next row before it reads the last one, so that nobody
//             waits for who is one step behind. A row is written again once all ranks have ended the
//             step that it held, of which they give notice.
//             All-reduce of more than kFlatBytes: each rank reduces its share of a chunk from all
//             rows and posts that for the others; smaller: each reduces all.
// Order       Reductions go by rank from 0, whatever the size and whoever reduces: all ranks get the
//             same bits. The arithmetic is the MPI library's own (MPI_Reduce_local).
// Invariants  All ranks of the node make the same calls in the same order, with as many bytes.
// Complexity  Small calls: a line of the cache written, and one read of each other rank. Long ones:
//             what a rank gives is copied once and what it gets once. Memory: of a window the rows
//             that were used.
// Errors      An MPI error code, of a reduction.
// Threads     One at a time.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "hierarchy/node_memory.h"

namespace tutti::mpi::preload {

// What is reduced.
struct Elements {
  MPI_Datatype type = MPI_BYTE;
  int64_t size = 1;  // bytes of an element
  MPI_Op op = MPI_OP_NULL;
};

class NodeCollectives {
 public:
  static constexpr int kMaxRanks = 256;

  // Collective over `communicator`, whose ranks are all on this node; null on all ranks where they
  // cannot share memory. `communicator` must outlive it.
  static int Make(MPI_Comm communicator, int rank, int size,
                  std::unique_ptr<NodeCollectives>* made);

  void Barrier();
  void Broadcast(std::byte* data, int64_t bytes, int root);
  // Rank k gives block k, which it has in its place where `own` is null. Blocks of all ranks.
  struct Block {
    std::byte* at;  // of who gets it
    int64_t bytes;
  };
  void AllGather(const std::byte* own, std::span<const Block> blocks);
  // Blocks of as many bytes. `all` is of the root alone; `own` null there: it stays in its place.
  void Gather(const std::byte* own, std::byte* all, int64_t block_bytes, int root);
  void Scatter(const std::byte* all, std::byte* own, int64_t block_bytes, int root);
  // `in` may be `out`.
  int AllReduce(const std::byte* in, std::byte* out, int64_t count, const Elements& elements) {
    return ReduceTo(in, out, count, elements, kAllRanks);
  }
  // `out` is of the root alone.
  int Reduce(const std::byte* in, std::byte* out, int64_t count, const Elements& elements,
             int root) {
    return ReduceTo(in, out, count, elements, root);
  }
  // counts[k] elements for rank k. `in` may be `out`.
  int ReduceScatter(const std::byte* in, std::byte* out, std::span<const int> counts,
                    const Elements& elements);

 private:
  static constexpr uint64_t kRows = 4;
  static constexpr int64_t kRowBytes = int64_t{256} << 10;
  static constexpr int64_t kFlatBytes = int64_t{16} << 10;
  static constexpr int64_t kMaxFlatWork = int64_t{64} << 10;  // that a rank reduces alone
  static constexpr int kAllRanks = -1;

  // What is posted first, so that few bytes share a line of the cache with the number.
  struct Row {
    alignas(64) std::atomic<uint64_t> posted;
    std::byte data[kRowBytes - sizeof(std::atomic<uint64_t>)];
  };
  struct Window {
    alignas(64) std::atomic<uint64_t> done;  // steps that this rank has ended
    Row rows[kRows];
    Row reduced[kRows];
  };
  // Room in a row.
  static constexpr int64_t kRoom = static_cast<int64_t>(sizeof(Row::data));

  NodeCollectives(int rank, int size) : rank_(rank), size_(size) {}

  Window& window(int rank) const { return *reinterpret_cast<Window*>(memory_->window(rank)); }
  Row& row(uint64_t step, int rank) const { return window(rank).rows[step % kRows]; }
  Row& reduced(uint64_t step, int rank) const { return window(rank).reduced[step % kRows]; }
  void WaitFor(const std::atomic<uint64_t>& word, uint64_t least) const {
    if (word.load(std::memory_order_acquire) < least) memory_->WaitFor(word, least);
  }
  const std::byte* Posted(uint64_t step, int rank) const {
    const Row& posted = row(step, rank);
    WaitFor(posted.posted, step);
    return posted.data;
  }
  void Post(uint64_t step) { row(step, rank_).posted.store(step, std::memory_order_release); }
  void End(uint64_t step) { window(rank_).done.store(step, std::memory_order_release); }
  void WaitForRow(uint64_t step);
  // For this many bytes in all, in pieces of `unit` bytes: a multiple of it.
  int64_t ChunkBytes(int64_t unit, bool reduces) const;

  int ReduceTo(const std::byte* in, std::byte* out, int64_t count, const Elements& elements,
               int root);
  int ReduceFlat(const std::byte* in, std::byte* out, int64_t bytes, int count,
                 const Elements& elements, int root);
  // into = sum over ranks k, from 0, of count elements, `offset` bytes into their rows of the step;
  // of this rank those at `own`.
  int Fold(uint64_t step, int64_t offset, const std::byte* own, int count, const Elements& elements,
           std::byte* into) const;

  int rank_, size_;
  std::unique_ptr<NodeMemory> memory_;
  uint64_t step_ = 0;      // the last one of the calls so far
  uint64_t all_done_ = 0;  // all ranks have ended the steps up to this one, as last seen
};

}  // namespace tutti::mpi::preload

// Communicator: collectives of a program's own processes (or threads), by Tutti's schedules over TCP.
//
// Model       N ranks, each one Communicator that one process or thread holds. All join by a *unique
//             id*, which one of them makes and hands to the others by any means (a file, an
//             MPI_Bcast, an environment variable). Each rank calls the same operations in the same
//             order. An operation runs in the calling thread and returns when this rank's output is
//             complete and its input may be overwritten.
//             Data connections are made along the edges of the schedules that run, on first use: rings in
//             shared memory between ranks of one host, TCP between hosts.
// Schedules   By collective and size, of a *schedule library*: a folder of schedule files for N
//             ranks, of which the one with the least predicted time on its network at that size
//             runs. Without one for a collective the built-in default: `bfb` on complete(N) up to 16
//             ranks, on genkautz(4,N) beyond; direct messages for gather, scatter and all-to-all. Where all
//             ranks share a host and each contributes 16 KiB at most, all write and read a shared board.
// Units       Counts are elements, and mean what NCCL means by them: of the whole buffer for
//             all-reduce, broadcast and reduce, of one rank's block for the others.
// In place    As NCCL: input == output (all-reduce, broadcast, reduce), input == output + rank * block
//             (all-gather, gather at the root), output == input + rank * block (reduce-scatter, scatter
//             at the root). All-to-all: buffers are apart.
// Order       Every element is reduced in the order that the schedule says: all ranks get the same
//             bits, also from run to run with the same library, count and number of ranks. With
//             CommunicatorOptions::fixed_order also where ranks are placed otherwise, on few hosts or many.
// Errors      An operation that fails leaves the communicator failed: every later one returns the
//             same error. kPeerFailed names who has gone, or both calls where ranks call different
//             things; kCancelled after Abort(); kInvalidArgument (a wrong root, count or rank) leaves
//             it as it was.
// Threads     One at a time a communicator, but for Abort(), which any may call.
// Trust       Who knows the unique id is a rank. Nothing is encrypted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/runtime/types.h"

namespace tutti {

struct UniqueId {
  std::array<std::byte, 128> bytes{};
};
// Begins to listen, in a thread of this process, for the ranks that join by it; the process has to
// live until all have joined. Listens at the address of this host (of IP version 4 or 6) that $TUTTI_HOST is or
// names, else at that of the first interface.
// With a service ($TUTTI_SERVICE, or its socket given here) the daemon of this host listens instead.
Result<UniqueId> MakeUniqueId(const std::string& service = {});
// For programs that share a folder: rank 0 makes an id and writes it, the others wait for the file.
// Rank 0 replaces a file that is there; a stale one that others read first is refused by its ranks'
// time-out, so that a path of its own for each run is better.
Result<UniqueId> ShareUniqueIdByFile(const std::string& path, int32_t rank, double timeout_s);

struct CommunicatorOptions {
  double timeout_s = 600;  // of each operation, and for all ranks to join; 0: none
  // A process that has given no sign of life for so long is stopped or cut off, and ends the communicator
  // with its name; also by TUTTI_SILENCE, in seconds. 0: it may be silent (in a debugger).
  double silence_s = 10;
  std::string schedules = {};  // folder of the schedule library; empty: $TUTTI_SCHEDULES, if set
  // Between ranks of one host; TCP where it is false on either side, or TUTTI_SHARED_MEMORY=0.
  bool shared_memory = true;
  // What reduces depends on the schedule alone, not on which ranks share a host: no shared board, one
  // schedule for a size, tiles that leave every element in its unit. Also by TUTTI_FIXED_ORDER=1; the same
  // on all ranks. Not with a service, which changes schedules.
  bool fixed_order = false;
  // Socket of the service whose rank this is (docs/guide/service.md); empty: $TUTTI_SERVICE, if set; "none":
  // no service, whatever the environment says.
  std::string service = {};
};

// A message of Exchange(): to or from `peer`. Messages between two ranks meet in order.
struct Message {
  int32_t peer = 0;
  void* data = nullptr;  // only read where it is sent
  int64_t bytes = 0;
  bool is_send = false;
};

struct RegroupAsk;

class Communicator {
 public:
  static Result<Communicator> Join(const UniqueId& id, int32_t num_ranks, int32_t rank,
                                   const CommunicatorOptions& options = {});
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();  // the others need not wait for it

  int32_t rank() const;
  int32_t num_ranks() const;

  Status AllReduce(const void* input, void* output, int64_t count, DataType type, ReduceOp op);
  Status AllGather(const void* input, void* output, int64_t count, DataType type);
  Status ReduceScatter(const void* input, void* output, int64_t count, DataType type, ReduceOp op);
  Status Broadcast(const void* input, void* output, int64_t count, DataType type, int32_t root);
  Status Reduce(const void* input, void* output, int64_t count, DataType type, ReduceOp op,
                int32_t root);
  Status Gather(const void* input, void* output, int64_t count, DataType type, int32_t root);
  Status Scatter(const void* input, void* output, int64_t count, DataType type, int32_t root);
  Status AllToAll(const void* input, void* output, int64_t count, DataType type);
  // Block r of the input, of send_counts[r] elements from send_offsets[r] on, goes to rank r.
  Status AllToAllV(const void* input, std::span<const int64_t> send_counts,
                   std::span<const int64_t> send_offsets, void* output,
                   std::span<const int64_t> receive_counts,
                   std::span<const int64_t> receive_offsets, DataType type);
  // All messages at once, so that no order of them can wait for itself.
  Status Exchange(std::span<const Message> messages);
  // Returns when all ranks have called it.
  Status Barrier();

  // Ranks of one colour >= 0 become a communicator, in the order of (key, rank). A negative colour:
  // nullptr. All ranks call it.
  Result<std::unique_ptr<Communicator>> Split(int32_t colour, int32_t key);

  // Whether it has failed or not: the ranks that are left become a communicator, in their old order. All that live
  // and are not `excluded` call it with the same list; those whose processes have ended need not be in it. It waits for
  // who lives and has not called it yet. One group of ranks can go on: the one with more than half of those that live, or
  // with half of them and the lowest; others get kPeerFailed. This communicator stays as it is. A call of it that still
  // runs has to be ended first, by Abort() where it waits for who is left out.
  Result<std::unique_ptr<Communicator>> Shrink(std::span<const int32_t> excluded = {});
  // One rank of it gets an id and hands it to those that are to join by it: they call Join with `num_ranks` and the ranks
  // behind those that are there; all that are there call Grow and keep their ranks. Of a communicator that has failed,
  // those grow that are left, as in Shrink(). `id`: of one of them at least.
  Result<UniqueId> MakeGrowId() const;
  Result<std::unique_ptr<Communicator>> Grow(int32_t num_ranks, const UniqueId* id = nullptr);

  // What runs, and all that is called from now on, fails on all ranks.
  void Abort();
  // Why it has failed; no error while it has not.
  Status health() const;
  // Which schedule a call with so many elements would run: "bfb on complete(4)",
  // "shared board", "direct messages", "copy" of the only rank, the name of a file.
  Result<std::string> ScheduleFor(CollectiveKind kind, int64_t count, DataType type);

  class Rank;  // the library's own

 private:
  explicit Communicator(std::unique_ptr<Rank> self);
  Result<std::unique_ptr<Communicator>> Again(const RegroupAsk& ask);
  std::unique_ptr<Rank> self_;
};

}  // namespace tutti

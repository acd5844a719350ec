// TrialRank: one rank of `tutti run` at work, in a process (or, in tests, a thread) of its own:
// patterns in, an interpreter over shared memory, times, the check of the results.
//
// Model       While the interpreter is stuck, the rank looks around for a while, saves messages that
//             block it, and sleeps on its bell.
// Threads     Over shared memory it allocates nothing after its construction, so that a child of a
//             process with threads may run it whatever its allocator; over TCP it allocates.
#pragma once

#include <cstdint>
#include <vector>

#include "interpreter.h"
#include "session.h"
#include "shared_connection.h"
#include "tutti/base/result.h"

namespace tutti {

// How a rank that shares no memory with the others meets them.
class RankLink {
 public:
  virtual ~RankLink() = default;
  // Returns when all ranks have come. `ran_ns`: what the last iteration took this rank; -1: none.
  virtual Status Barrier(int64_t ran_ns) = 0;
  // Called often, at work. Tells the others now and then that this rank gets on; an error when they
  // do not.
  virtual Status Beat(uint64_t beats) = 0;
};

class TrialRank final : private Probe {
 public:
  // `session` must outlive the rank; so must `link`, null where the ranks share memory.
  TrialRank(const Session& session, int32_t rank, RankLink* link = nullptr);
  TrialRank(const TrialRank&) = delete;
  TrialRank& operator=(const TrialRank&) = delete;
  ~TrialRank() override = default;

  // All iterations, then the check. Leaves its results in the session. kPeerFailed: a connection
  // or the link failed.
  Status Run();

 private:
  void Prepare();
  Status Iterate();
  int64_t CountWrong();
  int64_t WrongInGuard(int64_t offset) const;
  uint64_t DigestOfResults();
  // Calls visit(data, first position, count) in blocks and notes that the rank gets on.
  template <class Visit>
  void ForEachBlock(Buffer buffer, int32_t slot, ShardId shard, Visit visit);
  // The entries that output slot `slot` has to hold in the end; null where nothing is asked.
  const std::byte* ExpectedOf(int32_t slot) const;

  // Calls try_round() until it is over; looks around and sleeps while it is stuck.
  template <class TryRound>
  void Work(TryRound try_round);
  // The same where the transport sleeps.
  template <class TryRound>
  Status WorkOverPeers(TryRound try_round);
  // The rank is alive, and so are the others, as far as `link_` knows.
  Status LookAtOthers() {
    return link_ == nullptr ? Status() : link_->Beat(state_.beats.load(std::memory_order_relaxed));
  }
  // The last rank to arrive notes the time of `ended` and lets all go. -1: there is none.
  Status Barrier(int32_t ended);
  void BarrierInMemory(int32_t ended);
  void BeforeInstruction() override;
  void AfterInstruction(int32_t stream, int32_t step) override;
  Status Beat() {
    const uint64_t beats = state_.beats.fetch_add(1, std::memory_order_relaxed);
    return link_ == nullptr ? Status() : link_->Beat(beats);
  }

  const Session& session_;
  const int32_t rank_;
  RankState& state_;
  PeerTransport* transport_;  // null: shared memory
  RankLink* link_;
  std::vector<SharedConnection> ends_;
  Interpreter interpreter_;
  int64_t executed_ = 0, start_ns_ = 0;
  bool recording_ = false;
  int64_t released_ns_ = 0;
};

}  // namespace tutti

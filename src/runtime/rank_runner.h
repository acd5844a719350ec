// RankRunner: one rank at work, in a process (or, in tests, a thread) of its own.
//
// Model       One thread interprets all streams of the rank in turn, one instruction of each. An
//             instruction starts when those before it in the stream and those it waits for are
//             executed, its message is there, and no posted send still reads what it writes. When
//             nothing can start, the rank looks around for a while, saves messages that block it,
//             and sleeps on its bell.
// Threads     Allocates nothing, so that a child of a process with threads may run it.
#pragma once

#include <cstdint>
#include <vector>

#include "session.h"

namespace tutti {

class RankRunner {
 public:
  RankRunner(const Session& session, int32_t rank);  // `session` must outlive the runner

  // All iterations, then the check. Leaves its results in the session.
  void Run();

 private:
  struct Progress {
    uint64_t pass = 0;
    int32_t step = 0;  // in the pass
    uint64_t sent = 0, received = 0;
    uint64_t saved = 0;   // messages before this one have left the source
    uint64_t wanted = 0;  // messages before this one must leave it for the rank to get on
  };

  void Prepare();
  void Iterate(int32_t iteration);
  int64_t CountWrong();
  int64_t WrongInGuard(int64_t offset) const;
  // Calls visit(data, first position, count) in blocks and notes that the rank gets on.
  template <class Visit>
  void ForEachBlock(Buffer buffer, int32_t slot, ShardId shard, Visit visit);
  // The entries that output slot `slot` has to hold in the end; null where nothing is asked.
  const std::byte* ExpectedOf(int32_t slot) const;
  void DivideResults();

  // True when an instruction of the stream was executed.
  bool TryStep(int32_t stream, uint64_t end);
  bool DependenciesDone(const Step& step, uint64_t pass) const;
  bool SourcesFree(const Step& step, uint64_t pass);
  bool TryReceive(const StreamProgram& stream, Progress& progress, const Step& step);
  bool TrySend(const StreamProgram& stream, Progress& progress);
  void Move(const Step& step, uint64_t pass, const std::byte* packed);
  void SaveWanted();
  void Save(const StreamProgram& stream, uint64_t message);
  bool AllSendsOver();

  enum class Outcome { kMoved, kStuck, kOver };
  Outcome RunRound(uint64_t end);
  // Calls try_round() until it is over; looks around and sleeps while it is stuck.
  template <class TryRound>
  void Work(TryRound try_round);
  void Ring(int32_t rank, WaitsFor at_least);
  // The last rank to arrive notes the time of `ended` and lets all go. -1: there is none.
  void Barrier(int32_t ended);
  void DieIfAsked();
  void Record(int32_t stream, int32_t step, int64_t start_ns);
  void Beat() { state_.beats.fetch_add(1, std::memory_order_relaxed); }

  const Session& session_;
  const int32_t rank_;
  const RankProgram& program_;
  RankState& state_;
  const ReduceKernel reduce_;
  const DivideKernel divide_;
  std::vector<Progress> progress_;
  std::vector<int32_t> stream_of_;  // by connection, of this rank's outgoing ones
  uint64_t lowest_pass_ = 0;
  bool needs_acks_ = false;  // something waits for more than a message
  int64_t executed_ = 0;
  bool recording_ = false;
  int64_t released_ns_ = 0;
};

}  // namespace tutti

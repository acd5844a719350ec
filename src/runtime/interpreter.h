// Interpreter: one rank's part of a program, executed without ever blocking.
//
// Model       All streams of the rank take turns, one instruction of each a round. An instruction
//             starts when those before it in the stream and those it waits for are executed, its
//             message is there, and no posted send still reads what it writes. An execution is over
//             when all instructions are, all that was sent has been taken, and averages are
//             divided. Then Start() begins the next one.
//             A move stops where the budget ends and goes on in the next Poll, within a message.
// Invariants  I1  A posted message is overwritten only when it is released or saved.
//             I2  The order of reductions is the plan's: the same bits on every connection.
// Threads     One. Allocates nothing after its construction, so that a child of a process with
//             threads may run it.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "connection.h"
#include "kernels.h"
#include "piece.h"
#include "program.h"

namespace tutti {

// Told of each instruction, for traces and tests of faults.
class Probe {
 public:
  virtual ~Probe() = default;
  // About to try an instruction that nothing but a message or a window keeps.
  virtual void BeforeInstruction() = 0;
  virtual void AfterInstruction(int32_t stream, int32_t step) = 0;
};

// The ends that a stream sends and receives on, null where it does not.
struct StreamEnds {
  Connection* outgoing = nullptr;
  Connection* incoming = nullptr;
};

// Those of a rank's streams over a transport that knows where its peers are.
std::vector<StreamEnds> PeerEnds(const Program& program, int32_t rank, PeerTransport& transport);

class Interpreter {
 public:
  struct Call {
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    bool reduces = false;
    int32_t num_ranks = 1;
    int32_t passes_ahead = 4;  // of a stream before the last one of its rank
    bool past_cache = false;   // copies: what they write is not read soon
  };
  enum class Outcome : uint8_t { kMoved, kStuck, kOver };

  // `program`, `binding` and the connections must outlive it; no other interpreter may use the
  // connections meanwhile. `executed`, one a stream, counts instructions over all executions.
  Interpreter(const Program& program, int32_t rank, const Binding& binding, const Call& call,
              std::vector<StreamEnds> ends, std::atomic<uint64_t>* executed);

  void Start();
  // One round, moving at most `budget` bytes and a message's last part.
  Outcome Poll(int64_t budget);
  // After kStuck: more than a message is waited for, namely that somebody takes what was sent.
  bool needs_releases() const { return needs_releases_; }
  // Saves messages that keep instructions from starting, as far as that is allowed. To be called
  // when the rank has been stuck for a while: who waits for it may be waited for by it.
  void SaveWanted();
  // All instructions of this execution are executed; sends may still be under way.
  bool all_executed() const { return lowest_pass_ == end_; }
  Status health() const;
  void Watch(Probe* probe) { probe_ = probe; }

 private:
  struct StreamState {
    uint64_t pass = 0;
    int64_t tile = 0;     // of the pass
    int32_t step = 0;     // in the pass
    bool moving = false;  // within the instruction
    Cursor cursor;        // of a copy
    uint64_t sent = 0;
    uint64_t saved = 0;   // messages before this one have left the source
    uint64_t wanted = 0;  // messages before this one must leave it for the rank to get on
  };
  enum class Tried : uint8_t { kNo, kPart, kDone };

  Outcome RunRound(int64_t& budget);
  Tried TryStep(int32_t stream, int64_t& budget);
  Tried Execute(size_t stream, const Step& step, int64_t& budget);
  Tried TrySend(size_t stream, const Step& step);
  bool DependenciesDone(const Step& step, uint64_t pass) const;
  bool SourcesFree(const Step& step, uint64_t pass);
  bool AllSendsReleased();
  // False: there is more to divide.
  bool Divide(int64_t& budget);

  const Program& program_;
  const int32_t rank_;
  const Binding& binding_;
  const RankProgram& mine_;
  const ReduceKernel reduce_;
  const DivideKernel divide_;
  const Call call_;
  const bool averages_;
  std::vector<StreamEnds> ends_;
  std::vector<StreamState> states_;
  std::vector<int32_t> stream_of_;  // by connection, of this rank's outgoing ones
  std::atomic<uint64_t>* executed_;
  Probe* probe_ = nullptr;
  uint64_t lowest_pass_ = 0, end_ = 0;
  bool needs_releases_ = false;
  size_t dividing_ = 0;  // range of the results
  int64_t divided_ = 0;  // elements of it
};

}  // namespace tutti

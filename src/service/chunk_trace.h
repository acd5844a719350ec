// ChunkTrace: which instructions of their plans the local ranks of a communicator execute, for a while that an operator asks for.
//
// Model       An instruction sends, receives, reduces or copies a chunk, once for each part that a large call is cut into. It
//             lasts from when its stream came to it until it was executed: what it waits for, a message most of all, is within.
// Memory      kMost chunks; what comes after them is counted alone.
// Complexity  While nobody asks nothing is done for an instruction; else O(1).
// Threads     The daemon's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "interpreter.h"
#include "program.h"
#include "tutti/base/clock.h"

namespace tutti::service {

struct ExecutedChunk {
  int32_t rank = 0, stream = 0, instruction = 0;
  int32_t peer = -1;  // none: a copy
  OpCode op = OpCode::kCopy;
  uint32_t epoch = 0;
  uint64_t operation = 0;  // its number
  int64_t start_ns = 0, end_ns = 0;
};

class ChunkTrace {
 public:
  static constexpr size_t kMost = 50'000;
  using Done = std::function<void()>;

  // Keeps what is executed until then; `done` is called then, or at End(). False: somebody has asked already.
  bool Begin(int64_t now_ns, int64_t until_ns, Done done) {
    if (is_on()) return false;
    chunks_.clear();
    left_out_ = 0;
    begun_ns_ = now_ns;
    until_ns_ = until_ns;
    done_ = std::move(done);
    return true;
  }
  void Tick(int64_t now_ns) {
    if (is_on() && now_ns >= until_ns_) End();
  }
  void End() {
    if (const Done done = std::exchange(done_, nullptr)) done();
  }
  bool is_on() const { return done_ != nullptr; }
  int64_t begun_ns() const { return begun_ns_; }
  const std::vector<ExecutedChunk>& chunks() const { return chunks_; }
  int64_t left_out() const { return left_out_; }

  // For an operation that begins now, on that rank; null: nobody has asked. The program must outlive the operation.
  Probe* For(int32_t rank, uint64_t operation, uint32_t epoch, const Program& program) {
    if (!is_on()) return nullptr;
    std::unique_ptr<OfRank>& probe = probes_[rank];
    if (probe == nullptr) probe = std::make_unique<OfRank>(*this, rank);
    probe->Begin(operation, epoch, program);
    return probe.get();
  }

 private:
  class OfRank final : public Probe {
   public:
    OfRank(ChunkTrace& trace, int32_t rank) : trace_(trace), rank_(rank) {}

    void Begin(uint64_t operation, uint32_t epoch, const Program& program) {
      operation_ = operation;
      epoch_ = epoch;
      program_ = &program;
      since_ns_.assign(mine().streams.size(), NowNs());
    }
    void BeforeInstruction() override {}
    void AfterInstruction(int32_t stream_index, int32_t step) override {
      if (!trace_.is_on()) return;
      const StreamProgram& stream = mine().streams[static_cast<size_t>(stream_index)];
      const OpCode op = mine().steps[static_cast<size_t>(stream.first_step + step)].op;
      const int64_t now_ns = NowNs();
      trace_.Add({.rank = rank_,
                  .stream = stream_index,
                  .instruction = step,
                  .peer = PeerOf(stream, op),
                  .op = op,
                  .epoch = epoch_,
                  .operation = operation_,
                  .start_ns = std::exchange(since_ns_[static_cast<size_t>(stream_index)], now_ns),
                  .end_ns = now_ns});
    }

   private:
    const RankProgram& mine() const { return program_->ranks[static_cast<size_t>(rank_)]; }
    int32_t PeerOf(const StreamProgram& stream, OpCode op) const {
      if (op == OpCode::kCopy) return -1;
      if (op == OpCode::kSend)
        return program_->connections[static_cast<size_t>(stream.outgoing)].receiver;
      return program_->connections[static_cast<size_t>(stream.incoming)].sender;
    }

    ChunkTrace& trace_;
    int32_t rank_;
    uint64_t operation_ = 0;
    uint32_t epoch_ = 0;
    const Program* program_ = nullptr;
    std::vector<int64_t> since_ns_;  // when each stream came to its next instruction
  };

  void Add(const ExecutedChunk& chunk) {
    if (chunks_.size() < kMost)
      chunks_.push_back(chunk);
    else
      ++left_out_;
  }

  Done done_;  // null: nobody has asked
  int64_t begun_ns_ = 0, until_ns_ = 0, left_out_ = 0;
  std::vector<ExecutedChunk> chunks_;
  std::map<int32_t, std::unique_ptr<OfRank>> probes_;  // by rank
};

}  // namespace tutti::service

// What a communicator runs: one operation of this rank, in parts, without blocking.
//
// Model       Begin() before each execution, then Poll() until it is over. A PlanOperation executes a
//             plan and may be begun again with other buffers; an ExchangeOperation moves messages that
//             no plan orders, all at once: those of a peer one after the other, and a poll looks at the
//             peers that are not done yet.
// Threads     One.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "interpreter.h"
#include "lane.h"
#include "program.h"
#include "tutti/base/result.h"
#include "tutti/communicator.h"
#include "tutti/lower/plan.h"

namespace tutti {

class Operation {
 public:
  virtual ~Operation() = default;
  virtual Interpreter::Outcome Poll(int64_t budget) = 0;
  // Frees sources that others wait for, where that is allowed; after it has been stuck for a while.
  virtual void SaveWanted() {}
  virtual Status health() const = 0;
};

// What a plan is executed on.
struct PlanCall {
  int64_t count = 0;  // elements that M stands for
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;
  bool fixed_order = false;
  friend auto operator<=>(const PlanCall&, const PlanCall&) = default;
};

// Results of so many bytes, of all ranks of a host together, push each other out of the cache that its cores share. Past it (base/copy.h) they
// took 0.6 to 0.9 of the time on two cores that share 32 MiB, and half as many bytes 1.1 to 2 times as long.
inline constexpr int64_t kMoreThanCached = int64_t{16} << 20;

// What an operation moves through a rank, in bytes.
struct Load {
  int64_t sent = 0, received = 0;
  int64_t most_to_one = 0;  // of what is sent, on one connection
  int32_t ranks = 1;        // that take part: it, and those it exchanges with
  // It sends so much more than it receives, and than each receiver gets, that it would have to copy while they wait.
  bool FansOut() const;
  // If all ranks receive as much.
  bool IsMoreThanCached() const { return received * ranks >= kMoreThanCached; }
};

// Whether the rank sends what it received and did not reduce.
bool Forwards(const Program& program, int32_t rank);

// A plan laid out for a call.
struct PlanProgram {
  // Errors of SlotMap and MakeProgram.
  static Result<std::shared_ptr<const PlanProgram>> Make(const Plan& plan, const PlanCall& call);
  // The same for all ranks of this process together, as long as one has it. From any thread; one makes it
  // while the others wait. `digest`: of the plan.
  static Result<std::shared_ptr<const PlanProgram>> MakeOnce(const Plan& plan, uint64_t digest,
                                                             const PlanCall& call);

  PlanCall call;
  Program program;
  bool reduces = false;
  std::vector<int64_t> scratch_bytes;  // by rank
};

class PlanOperation final : public Operation {
 public:
  PlanOperation(std::shared_ptr<const PlanProgram> program, int32_t rank, LaneSource& lanes);
  PlanOperation(const PlanOperation&) = delete;
  PlanOperation& operator=(const PlanOperation&) = delete;

  // Told of each instruction from now on, and has to outlive that; null: nobody is.
  void Watch(Probe* probe) { interpreter_->Watch(probe); }
  const PlanProgram& program() const { return *program_; }
  // Bytes that Begin() needs as scratch.
  int64_t scratch_bytes() const { return program_->scratch_bytes[static_cast<size_t>(rank_)]; }
  void Begin(const void* input, void* output, std::byte* scratch);
  Interpreter::Outcome Poll(int64_t budget) override { return interpreter_->Poll(budget); }
  void SaveWanted() override { interpreter_->SaveWanted(); }
  Status health() const override { return interpreter_->health(); }

 private:
  std::shared_ptr<const PlanProgram> program_;
  LaneSource& lanes_;
  bool fans_out_ = false;
  int32_t rank_;
  Binding binding_;
  std::deque<LaneEnd> ends_;
  std::vector<std::atomic<uint64_t>> executed_;
  std::unique_ptr<Interpreter> interpreter_;
};

class ExchangeOperation final : public Operation {
 public:
  // `what` stands for the call in the signatures of its messages.
  ExchangeOperation(std::span<const Message> messages, uint64_t what, int32_t rank,
                    LaneSource& lanes);
  Interpreter::Outcome Poll(int64_t budget) override;
  Status health() const override;
  // Of whom something is not yet received, or to whom not yet sent: each once.
  std::vector<int32_t> PeersWaitedFor() const;

 private:
  struct Part {
    Message message;
    uint64_t signature = 0;  // of the call and the length, so that both ends know it
    Binding binding = {};
    Segment segment = {};
  };
  // The messages to one peer, or from it, in their order.
  struct Way {
    Way(Lane& lane, int32_t of) : end(lane), peer(of) {}
    LaneEnd end;
    int32_t peer;
    std::deque<Part> parts;
    size_t next = 0;  // to be posted or taken
    bool is_over() const { return next == parts.size(); }
  };
  using Ways = std::vector<Way*>;

  Way& WayOf(const Message& message);
  void MoveOwn();
  Load TotalLoad() const;
  // Post and take what can be; true: something moved. Ways where all is done leave the list.
  bool Post();
  bool Take(int64_t& budget);

  LaneSource& lanes_;
  std::map<std::pair<int32_t, bool>, Way> ways_;  // by peer, whether it is sent to
  Ways posting_, leaving_, taking_;               // leaving: posted and not yet released
  std::vector<Message> own_sends_, own_receives_;
  bool began_ = false, past_cache_ = false;
};

}  // namespace tutti

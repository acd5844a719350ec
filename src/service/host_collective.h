// HostCollective: one small collective whose ranks all are this daemon's: when the last of them has called it, all is copied, or
// reduced once, between their buffers. No message, no plan.
//
// Model       Every rank enters with its call; all calls have to be alike. Each ends with its next poll after the last has come.
// Order       Reductions go by rank, from 0, once for all: all get the same bits.
// Cost        What the ranks contribute is read once, what they get is written once.
// Errors      kPeerFailed: another rank runs another call, with both.
// Threads     The daemon's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "collective_call.h"
#include "operation.h"
#include "tutti/base/result.h"

namespace tutti::service {

class HostCollective {
 public:
  explicit HostCollective(int32_t num_ranks)
      : num_ranks_(num_ranks), calls_(static_cast<size_t>(num_ranks)) {}

  // As new; its memory serves the next one.
  void Reset() {
    entered_ = 0;
    first_ = -1;
    health_ = {};
  }
  // What goes this way; larger ones are worth a plan.
  static bool Fits(const CollectiveCall& call, int32_t num_ranks);

  // Once for each rank. The last one has it executed.
  void Enter(int32_t rank, const CollectiveCall& call);
  bool is_done() const { return entered_ == num_ranks_ && health_; }
  const Status& health() const { return health_; }

 private:
  const CollectiveCall& CallOf(int32_t rank) const { return calls_[static_cast<size_t>(rank)]; }
  void Execute();
  // Of all that the ranks contribute, into the sum.
  void Reduce();
  void CopyBlocks();

  int32_t num_ranks_;
  std::vector<CollectiveCall> calls_;  // by rank
  int32_t entered_ = 0, first_ = -1;   // who came first
  std::vector<std::byte> sum_;
  Status health_;
};

// A rank's part of it.
class HostOperation final : public Operation {
 public:
  explicit HostOperation(std::shared_ptr<const HostCollective> collective)
      : collective_(std::move(collective)) {}
  Interpreter::Outcome Poll(int64_t) override {
    return collective_->is_done() ? Interpreter::Outcome::kOver : Interpreter::Outcome::kStuck;
  }
  Status health() const override { return collective_->health(); }

 private:
  std::shared_ptr<const HostCollective> collective_;
};

}  // namespace tutti::service

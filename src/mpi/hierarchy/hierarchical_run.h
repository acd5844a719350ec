// One hierarchical exchange under way (hierarchical.h): which rounds there are and how large
// everything is (hierarchical_sizes.cc), then the blocks themselves (hierarchical.cc).
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "block_exchange.h"
#include "buffer_pool.h"
#include "copy.h"
#include "hierarchy/routes.h"
#include "message.h"
#include "trace.h"
#include "tutti/alltoallv/algorithm.h"
#include "tutti/base/index.h"

namespace tutti::mpi {

// The sizes of the blocks that this rank holds after a level, and where it keeps them.
struct Holding {
  int sources = 0;              // members of the level's group
  std::vector<int64_t> bytes;   // [row * sources + source]; a row is a destination of held()
  std::vector<int64_t> offset;  // into `blocks`, one more than bytes; own row takes no place
  Lease blocks;

  int64_t total() const { return offset.back(); }
  int64_t size(int row, int source) const {
    return bytes[Index(row) * Index(sources) + Index(source)];
  }
  int64_t start(int row, int source) const {
    return offset[Index(row) * Index(sources) + Index(source)];
  }
};

// Messages in flight, finished in the order in which they were posted.
struct Flight {
  MPI_Request request = MPI_REQUEST_NULL;
  Lease staging;  // of a message that is not received in place
  int64_t bytes = 0;
  const Routes::Receive* arrival = nullptr;  // what to unpack from `staging`
};

class Hierarchical {
 public:
  static constexpr int kRoundsInFlight = 8;  // of one digit, inside a group

  Hierarchical(const BlockExchange& exchange, const Routes& routes, int radix, int window,
               bool staggered, Trace* trace)
      : exchange_(exchange),
        routes_(routes),
        group_(routes.group(0)),
        members_(group_.size()),
        self_(routes.position() - group_.begin),
        last_(routes.num_levels() - 1),
        in_place_(members_ == 1 && last_ == 1),
        radix_(alltoallv::RadixFor(radix, members_)),
        window_(Index(window <= 0 ? alltoallv::kDefaultBlockCount : window)),
        staggered_(staggered),
        trace_(trace),
        watch_(trace),
        holdings_(Index(routes.num_levels())) {}

  int Run() {
    PlanRounds();
    watch_.Charge(&Trace::prepare_s);
    if (const int error = ExchangeMemberSizes()) return error;
    for (int l = 1; l < last_; ++l) {
      if (const int error = ExchangeGroupSizes(l)) return error;
    }
    if (const int error = ExchangeInsideGroup()) return error;
    for (int l = 1; l <= last_; ++l) {
      if (const int error = ExchangeBetweenGroups(l)) return error;
    }
    SettleCopies();
    return MPI_SUCCESS;
  }

 private:
  // One round of TuNA in the group: to the member `distance` after this one.
  struct Round {
    int distance = 0;
    int stride = 1;                       // r^x of its digit x
    size_t first_slot = 0, end_slot = 0;  // of slots_
    int64_t sent_bytes = 0;
    int64_t received_bytes = 0;
    Lease arrived, gathered;
    int sent_from = -1;     // the round whose `arrived` is sent on without a copy
    int waiting_slots = 0;  // slots in `arrived` that are to be sent on
    MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;
  };

  int Member(int distance) const { return (self_ + distance + members_) % members_; }
  int RankOfMember(int member) const { return routes_.rank(group_.begin + member); }

  void PlanRounds();
  int ExchangeMemberSizes();
  int ExchangeSizesOfDigit(size_t first, size_t end);
  void MeasureUniformRound(Round& round);
  int ExchangeGroupSizes(int level);
  void PlaceHolding(int level);
  int ReservePlace(int level);

  int ExchangeInsideGroup();
  int Post(size_t round);
  int Finish(size_t round);
  void Deliver(int source, const std::byte* from);
  void DeliverOwn();
  void ReleaseSlot(int round);

  int ExchangeBetweenGroups(int level);
  int PostStep(int level, const Routes::Step& step);
  int PostStaggeredStep(const Routes::Step& step);
  int PostReceive(int level, const Routes::Receive& receive);
  int PostSend(int level, const Routes::Send& send);
  int Receive(int level, std::byte* into, int64_t bytes, int from, const Routes::Receive* arrival,
              int lane = 0);
  int SendOn(const std::byte* from, int64_t bytes, int to, int lane = 0);
  // Between two ranks only the messages of a lane keep their order: those of staggered, of which
  // two ranks have several under way, need not, and SMPI lets an eager one overtake one that is
  // not.
  static Tag TagOf(int lane) { return static_cast<Tag>(static_cast<int>(Tag::kNode) + lane); }
  int FinishOldest(std::vector<Flight>& flights, size_t& oldest, int level);
  void KeepOwnRows(int level);
  // Where the caller has the block for the receiver of `send`.
  const std::byte* PlaceToSend(const Routes::Send& send) const {
    const size_t rank = Index(routes_.rank(send.to));
    if (exchange_.send_bytes[rank] == 0) return nullptr;
    return exchange_.send + exchange_.send_offset[rank];
  }
  void Unpack(int level, const Flight& flight);

  void Hold(int64_t bytes) {
    held_bytes_ += bytes;
    if (trace_ != nullptr) trace_->NoteTemporary(held_bytes_);
  }
  void Stage(int64_t bytes) {
    staged_bytes_ += bytes;
    if (trace_ != nullptr) trace_->NoteStaging(staged_bytes_);
  }
  void CountMessage() {
    if (trace_ != nullptr) ++trace_->messages;
  }

  const BlockExchange& exchange_;
  const Routes& routes_;
  const Range group_;
  const int members_;  // [Q] of the finest group
  const int self_;     // [g] index in it
  const int last_;
  const bool in_place_;  // blocks leave from the caller's buffer: nothing to gather
  const int radix_;
  const size_t window_;
  const bool staggered_;
  Trace* const trace_;
  StopWatch watch_;
  std::vector<Holding> holdings_;
  int64_t held_bytes_ = 0;
  int64_t staged_bytes_ = 0;

  // Slot i: the bundle that started i members before the one it goes to.
  std::vector<Round> rounds_;
  std::vector<int> slots_;                // of all rounds
  std::vector<int64_t> sent_, received_;  // bytes, beside slots_
  std::vector<int64_t> slot_sizes_;       // [slot * widest bundle + place in the bundle]
  size_t widest_ = 0;
  std::vector<const std::byte*> slot_at_;  // null: blocks still in the caller's send buffer
  std::vector<int> slot_round_;            // in which it came; -1: it started here
  size_t posted_ = 0;

  std::vector<Flight> sends_, receives_;
  size_t oldest_send_ = 0, oldest_receive_ = 0;
};

}  // namespace tutti::mpi

// Small collectives of ranks that all are on one host: each writes once to the board of the LocalArea
// what the others need, and reads there what it needs. No kernel call while others are awake.
//
//             Who only gives (the root of a broadcast) waits for nobody, but for a row of the board that
//             is still read from; who only takes waits for those that give.
// Order       Reductions go by rank, from 0: all ranks get the same bits.
// Complexity  One write of what the rank contributes; N reads. Up to 48 bytes are one cache line from each rank to each. Nothing
//             waits for a store to be seen but the end of the operation, where who may have gone to sleep is looked for: all
//             who wait then have been written for, so that somebody always ends.
// Errors      kPeerFailed: another rank runs another call.
#pragma once

#include <cstdint>

#include "collective_call.h"
#include "lanes.h"
#include "local_area.h"
#include "operation.h"

namespace tutti {

// What all ranks have to call alike but for the count, whose place is empty, as is the highest bit.
uint64_t PackedWithoutCount(const CollectiveCall& call);

class BoardOperation final : public Operation {
 public:
  // What each rank writes has room in a slot.
  static bool Fits(const CollectiveCall& call, int32_t num_ranks);

  // lanes.common_area() is not null. `sequence` counts the operations of this communicator's board from 1; `all_done`: all ranks have
  // ended the operations up to this one, as last seen.
  BoardOperation(const CollectiveCall& call, Lanes& lanes, uint64_t sequence, uint64_t& all_done,
                 int32_t rank, int32_t num_ranks);
  Interpreter::Outcome Poll(int64_t budget) override;
  Status health() const override { return health_; }

 private:
  bool Writes() const;
  bool Reads() const;
  // All have ended what the row held before.
  bool RowIsFree();
  std::byte* DataOf(int32_t rank) const {
    return is_inline_ ? area_.slot(sequence_, rank).data.data() : area_.block(sequence_, rank);
  }
  // What `rank` gives to this one, where it gives each another block.
  const std::byte* BlockFrom(int32_t rank) const;
  void Post();
  void Read();
  // Reduces count elements, `offset` bytes into what each rank has written.
  void ReduceAll(int64_t offset);

  const CollectiveCall call_;
  Lanes& lanes_;
  LocalArea& area_;
  const int64_t written_bytes_;  // by a rank that writes
  const bool is_inline_;
  const uint64_t sequence_, packed_call_;
  uint64_t& all_done_;
  const int32_t rank_, num_ranks_;
  bool posted_ = false;
  int32_t seen_ = 0, last_ = 0;  // ranks before seen_ have written; of last_ on nothing is read
  Status health_;
};

}  // namespace tutti

// Large broadcasts and all-gathers of ranks that all are on one host, segment by segment over the board of the LocalArea: what a rank gives is
// written once, whoever reads it, where messages are written for each rank that gets them.
//
// Model       Segment k has a row of the board to itself, as an operation of the board has: each rank that gives writes its next bytes to its block
//             of the row, a root to its wide one. Writers run ahead as far as there are rows; what lies in them stays in the caches.
// Complexity  What a rank gives is written once, read by each of the N - 1 others, and copied to its own result.
// Errors      kPeerFailed: another rank runs another call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collective_call.h"
#include "lanes.h"
#include "local_area.h"
#include "operation.h"

namespace tutti {

class BoardStream final : public Operation {
 public:
  static bool Fits(const CollectiveCall& call, int32_t num_ranks);
  // Rows that the call takes.
  static uint64_t Rows(const CollectiveCall& call);

  // lanes.common_area() is not null. `first`: the row of its first segment, one more than that of the last operation of the board;
  // `all_done`: all ranks have ended the rows up to this one, as last seen.
  BoardStream(const CollectiveCall& call, Lanes& lanes, uint64_t first, uint64_t& all_done,
              int32_t rank, int32_t num_ranks);
  Interpreter::Outcome Poll(int64_t budget) override;
  Status health() const override { return health_; }

 private:
  bool Writes() const { return !has_root_ || rank_ == call_.root; }
  bool Reads() const { return !has_root_ || rank_ != call_.root; }
  bool RowIsFree(uint64_t row);
  int64_t BytesOf(uint64_t segment) const;
  std::byte* BlockOf(uint64_t row, int32_t rank) const {
    return has_root_ ? area_.wide_block(row, rank) : area_.block(row, rank);
  }
  // To a result.
  void Store(std::byte* to, const std::byte* from, int64_t bytes) const;
  // The next segment; bytes moved, 0: there is none, or it has to wait.
  int64_t WriteNext();
  int64_t ReadNext();
  bool CheckCallOf(const BoardSlot& slot, int32_t rank);
  void EndRow(uint64_t row);

  const CollectiveCall call_;
  Lanes& lanes_;
  LocalArea& area_;
  const bool has_root_;
  const int32_t rank_, num_ranks_;
  const int64_t segment_bytes_, bytes_;  // that a writer gives in a row, and in all
  const uint64_t first_, segments_, packed_call_;
  const bool past_cache_;
  uint64_t& all_done_;
  uint64_t written_ = 0, read_ = 0;  // segments
  int32_t seen_ = 0;  // ranks after this one whose block of the next segment has been read
  Status health_;
};

}  // namespace tutti

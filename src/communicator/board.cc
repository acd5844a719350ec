#include "board.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels.h"

namespace tutti {
namespace {

void Copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

// The root gives, the others take.
bool FromRoot(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter;
}

// Bytes that a rank writes, if it does.
int64_t LargestWritten(const CollectiveCall& call, int32_t num_ranks) {
  const bool all_blocks = call.kind == CollectiveKind::kReduceScatter ||
                          call.kind == CollectiveKind::kScatter ||
                          call.kind == CollectiveKind::kAllToAll;
  return call.block_bytes() * (all_blocks ? num_ranks : 1);
}

}  // namespace

bool BoardOperation::Fits(const CollectiveCall& call, int32_t num_ranks) {
  // Beyond this much reduced by every rank alone it is worth sharing the work.
  constexpr int64_t kMaxReduced = int64_t{64} << 10;
  if (call.count > BoardSlot::kBytes) return false;
  const int64_t written = LargestWritten(call, num_ranks);
  const bool reduces = call.kind == CollectiveKind::kAllReduce;
  return written <= BoardSlot::kBytes && (!reduces || written * num_ranks <= kMaxReduced);
}

BoardOperation::BoardOperation(const CollectiveCall& call, Lanes& lanes, uint64_t sequence,
                               uint64_t& all_done, int32_t rank, int32_t num_ranks)
    : call_(call),
      lanes_(lanes),
      area_(*lanes.common_area()),
      sequence_(sequence),
      signature_(SignatureOf(call, 0)),
      all_done_(all_done),
      rank_(rank),
      num_ranks_(num_ranks) {
  if (!Reads()) return;
  const bool from_root = FromRoot(call_.kind);
  seen_ = from_root ? call_.root : 0;
  last_ = from_root ? call_.root + 1 : num_ranks_;
}

bool BoardOperation::Writes() const { return !FromRoot(call_.kind) || rank_ == call_.root; }

bool BoardOperation::Reads() const {
  const bool to_root =
      call_.kind == CollectiveKind::kReduce || call_.kind == CollectiveKind::kGather;
  return !to_root || rank_ == call_.root;
}

bool BoardOperation::RowIsFree() {
  if (sequence_ <= all_done_ + BoardSlot::kRows) return true;
  uint64_t least = sequence_;
  for (int32_t rank = 0; rank < num_ranks_; ++rank)
    least = std::min(least, area_.bell(rank).board_done.load());
  all_done_ = least;
  return sequence_ <= all_done_ + BoardSlot::kRows;
}

void BoardOperation::Post() {
  BoardSlot& mine = area_.slot(sequence_, rank_);
  Copy(mine.data.data(), call_.input, LargestWritten(call_, num_ranks_));
  mine.signature = signature_;
  mine.sequence.store(sequence_);
  lanes_.WakeOthers();
}

Interpreter::Outcome BoardOperation::Poll(int64_t) {
  if (!posted_ && Writes()) {
    if (!RowIsFree()) return Interpreter::Outcome::kStuck;
    Post();
  }
  posted_ = true;
  for (; seen_ < last_; ++seen_) {
    const BoardSlot& slot = area_.slot(sequence_, seen_);
    if (slot.sequence.load() != sequence_) return Interpreter::Outcome::kStuck;
    if (slot.signature == signature_) continue;
    health_ = MakeError(ErrorCode::kPeerFailed,
                        fmt::format("rank {} runs call {:016x}, this rank runs call {:016x}: the "
                                    "ranks do not run the same",
                                    seen_, slot.signature, signature_));
    return Interpreter::Outcome::kStuck;
  }
  if (Reads()) Read();
  area_.bell(rank_).board_done.store(sequence_);
  lanes_.WakeOthers();  // some may wait for the row
  return Interpreter::Outcome::kOver;
}

void BoardOperation::ReduceAll(int64_t offset) {
  if (call_.count == 0) return;
  const ReduceKernel reduce = FindReduceKernel(call_.type, call_.op);
  Copy(call_.output, DataOf(0) + offset, call_.block_bytes());
  for (int32_t rank = 1; rank < num_ranks_; ++rank)
    reduce(call_.output, call_.output, DataOf(rank) + offset, call_.count);
  if (call_.op == ReduceOp::kAvg)
    FindDivideKernel(call_.type)(call_.output, call_.count, num_ranks_);
}

void BoardOperation::Read() {
  const int64_t block = call_.block_bytes();
  switch (call_.kind) {
    case CollectiveKind::kAllReduce:
      return ReduceAll(0);
    case CollectiveKind::kReduceScatter:
      return ReduceAll(block * rank_);
    case CollectiveKind::kReduce:
      return ReduceAll(0);
    case CollectiveKind::kBroadcast:
      return Copy(call_.output, DataOf(call_.root), block);
    case CollectiveKind::kScatter:
      return Copy(call_.output, DataOf(call_.root) + block * rank_, block);
    case CollectiveKind::kGather:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV:
      break;
  }
  const int64_t offset = call_.kind == CollectiveKind::kAllToAll ? block * rank_ : 0;
  for (int32_t rank = 0; rank < num_ranks_; ++rank)
    Copy(Advanced(call_.output, block * rank), DataOf(rank) + offset, block);
}

}  // namespace tutti

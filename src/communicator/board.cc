#include "board.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels.h"

namespace tutti {
namespace {

constexpr int kBitsOfCount = 16;

// The root gives, the others take.
bool FromRoot(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter;
}

// A block goes to each rank, that of the writer itself to nobody.
bool KeepsOwnBlock(CollectiveKind kind) {
  return kind == CollectiveKind::kScatter || kind == CollectiveKind::kAllToAll;
}

// Bytes that a rank gives, if it does.
int64_t GivenBytes(const CollectiveCall& call, int32_t num_ranks) {
  return InputBytes(call, call.root, num_ranks);
}

// What all ranks have to call alike: of calls that fit, no two look the same.
uint64_t Packed(const CollectiveCall& call) {
  static_assert(BoardSlot::kBlockBytes < 1 << kBitsOfCount);
  return PackedWithoutCount(call) | static_cast<uint64_t>(call.count);
}

}  // namespace

uint64_t PackedWithoutCount(const CollectiveCall& call) {
  static_assert(LocalArea::kMaxRanks < 1 << 16);
  return uint64_t{static_cast<uint8_t>(call.kind)} << 56 |
         uint64_t{static_cast<uint8_t>(call.type)} << 48 |
         uint64_t{static_cast<uint8_t>(call.op)} << 40 |
         static_cast<uint64_t>(call.root) << kBitsOfCount;
}

bool BoardOperation::Fits(const CollectiveCall& call, int32_t num_ranks) {
  // Beyond this much reduced by every rank alone it is worth sharing the work.
  constexpr int64_t kMaxReduced = int64_t{64} << 10;
  if (call.count > BoardSlot::kBlockBytes) return false;
  const int64_t given = GivenBytes(call, num_ranks);
  const bool reduces = call.kind == CollectiveKind::kAllReduce;
  return given <= BoardSlot::kBlockBytes && (!reduces || given * num_ranks <= kMaxReduced);
}

BoardOperation::BoardOperation(const CollectiveCall& call, Lanes& lanes, uint64_t sequence,
                               uint64_t& all_done, int32_t rank, int32_t num_ranks)
    : call_(call),
      lanes_(lanes),
      area_(*lanes.common_area()),
      written_bytes_(GivenBytes(call, num_ranks) -
                     (KeepsOwnBlock(call.kind) ? call.block_bytes() : 0)),
      is_inline_(written_bytes_ <= BoardSlot::kInlineBytes),
      sequence_(sequence),
      packed_call_(Packed(call)),
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
  const uint64_t rows = is_inline_ ? BoardSlot::kRows : BoardSlot::kBlockRows;
  if (sequence_ > all_done_ + rows) all_done_ = area_.DoneByAll();
  return sequence_ <= all_done_ + rows;
}

void BoardOperation::Post() {
  BoardSlot& mine = area_.slot(sequence_, rank_);
  if (KeepsOwnBlock(call_.kind)) {
    const int64_t block = call_.block_bytes(), before = block * rank_;
    CopyBlock(DataOf(rank_), call_.input, before);
    CopyBlock(DataOf(rank_) + before, Advanced(call_.input, before + block),
              written_bytes_ - before);
  } else {
    CopyBlock(DataOf(rank_), call_.input, written_bytes_);
  }
  mine.call = packed_call_;
  mine.sequence.store(sequence_, std::memory_order_release);
  // Those who have read the line that is next must give it up before it is written.
  constexpr int kToWrite = 1;
  __builtin_prefetch(&area_.slot(sequence_ + 1, rank_), kToWrite);
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
    if (slot.call == packed_call_) continue;
    health_ = MakeError(ErrorCode::kPeerFailed,
                        fmt::format("rank {} runs call {:016x}, this rank runs call {:016x}: the "
                                    "ranks do not run the same",
                                    seen_, slot.call, packed_call_));
    return Interpreter::Outcome::kStuck;
  }
  if (Reads()) Read();
  // A root that is ahead looks for free rows: where each of them were said at once, the line would cross between two cores each time.
  constexpr uint64_t kReadAtOnce = 4;
  static_assert(2 * kReadAtOnce <= BoardSlot::kBlockRows);  // nobody waits for what is left unsaid
  if (!Writes() && sequence_ % kReadAtOnce != 0) return Interpreter::Outcome::kOver;
  // Seen by all before it is looked who sleeps, and with it what was posted.
  area_.bell(rank_).board_done.store(sequence_, std::memory_order_seq_cst);
  lanes_.WakeOthers();
  return Interpreter::Outcome::kOver;
}

void BoardOperation::ReduceAll(int64_t offset) {
  if (call_.count == 0) return;
  const ReduceKernel reduce = FindReduceKernel(call_.type, call_.op);
  CopyBlock(call_.output, DataOf(0) + offset, call_.block_bytes());
  for (int32_t rank = 1; rank < num_ranks_; ++rank)
    reduce(call_.output, call_.output, DataOf(rank) + offset, call_.count);
  if (call_.op == ReduceOp::kAvg)
    FindDivideKernel(call_.type)(call_.output, call_.count, num_ranks_);
}

const std::byte* BoardOperation::BlockFrom(int32_t rank) const {
  const int64_t block = call_.block_bytes();
  if (rank == rank_) return Advanced(call_.input, block * rank_);
  return DataOf(rank) + block * (rank_ < rank ? rank_ : rank_ - 1);
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
      return CopyBlock(call_.output, DataOf(call_.root), block);
    case CollectiveKind::kScatter:
      return CopyBlock(call_.output, BlockFrom(call_.root), block);
    case CollectiveKind::kGather:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV:
      break;
  }
  for (int32_t rank = 0; rank < num_ranks_; ++rank)
    CopyBlock(Advanced(call_.output, block * rank),
              call_.kind == CollectiveKind::kAllToAll ? BlockFrom(rank) : DataOf(rank), block);
}

}  // namespace tutti

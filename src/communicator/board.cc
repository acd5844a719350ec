#include "board.h"

#include <fmt/format.h>

#include <cstring>

#include "kernels.h"

namespace tutti {
namespace {

void Copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

int64_t LargestWritten(const CollectiveCall& call, int32_t num_ranks) {
  const bool all_blocks = call.kind == CollectiveKind::kReduceScatter ||
                          call.kind == CollectiveKind::kScatter ||
                          call.kind == CollectiveKind::kAllToAll;
  return call.block_bytes() * (all_blocks ? num_ranks : 1);
}

}  // namespace

bool BoardOperation::Fits(const CollectiveCall& call, int32_t num_ranks) {
  return call.count <= BoardSlot::kBytes && LargestWritten(call, num_ranks) <= BoardSlot::kBytes;
}

BoardOperation::BoardOperation(const CollectiveCall& call, LocalArea& area, uint64_t sequence,
                               int32_t rank, int32_t num_ranks)
    : call_(call),
      area_(area),
      sequence_(sequence),
      signature_(SignatureOf(call, 0)),
      rank_(rank),
      num_ranks_(num_ranks) {
  Post();
}

int64_t BoardOperation::Written(int32_t rank) const {
  const bool of_root =
      call_.kind == CollectiveKind::kBroadcast || call_.kind == CollectiveKind::kScatter;
  return of_root && rank != call_.root ? 0 : LargestWritten(call_, num_ranks_);
}

void BoardOperation::Post() {
  BoardSlot& mine = area_.slot(sequence_, rank_);
  Copy(mine.data.data(), call_.input, Written(rank_));
  mine.signature = signature_;
  mine.sequence.store(sequence_);
  for (int32_t rank = 0; rank < num_ranks_; ++rank)
    if (rank != rank_) LocalBell(area_.bell(rank)).Wake(WaitsFor::kForMessages);
}

Interpreter::Outcome BoardOperation::Poll(int64_t) {
  for (; seen_ < num_ranks_; ++seen_) {
    const BoardSlot& slot = area_.slot(sequence_, seen_);
    if (slot.sequence.load() != sequence_) return Interpreter::Outcome::kStuck;
    if (slot.signature == signature_) continue;
    health_ = MakeError(ErrorCode::kPeerFailed,
                        fmt::format("rank {} runs call {:016x}, this rank runs call {:016x}: the "
                                    "ranks do not run the same",
                                    seen_, slot.signature, signature_));
    return Interpreter::Outcome::kStuck;
  }
  Read();
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
      if (rank_ == call_.root) ReduceAll(0);
      return;
    case CollectiveKind::kBroadcast:
      return Copy(call_.output, DataOf(call_.root), block);
    case CollectiveKind::kScatter:
      return Copy(call_.output, DataOf(call_.root) + block * rank_, block);
    case CollectiveKind::kGather:
      if (rank_ != call_.root) return;
      break;
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

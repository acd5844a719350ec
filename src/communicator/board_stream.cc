#include "board_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "board.h"
#include "tutti/base/copy.h"

namespace tutti {
namespace {

bool IsBroadcast(const CollectiveCall& call) { return call.kind == CollectiveKind::kBroadcast; }

int64_t SegmentBytes(const CollectiveCall& call) {
  return IsBroadcast(call) ? BoardSlot::kWideBytes : BoardSlot::kBlockBytes;
}

// Of no operation that fits into a slot.
constexpr uint64_t kOfStreams = uint64_t{1} << 63;

// What all ranks together get.
int64_t ResultBytes(const CollectiveCall& call, int32_t num_ranks) {
  return num_ranks * OutputBytes(call, call.root, num_ranks);
}

}  // namespace

bool BoardStream::Fits(const CollectiveCall& call, int32_t num_ranks) {
  // Between two ranks a message is written once as well.
  constexpr int32_t kMany = 3;
  return num_ranks >= kMany &&
         (call.kind == CollectiveKind::kBroadcast || call.kind == CollectiveKind::kAllGather);
}

uint64_t BoardStream::Rows(const CollectiveCall& call) {
  const int64_t segment = SegmentBytes(call);
  return static_cast<uint64_t>((call.block_bytes() + segment - 1) / segment);
}

BoardStream::BoardStream(const CollectiveCall& call, Lanes& lanes, uint64_t first,
                         uint64_t& all_done, int32_t rank, int32_t num_ranks)
    : call_(call),
      lanes_(lanes),
      area_(*lanes.common_area()),
      has_root_(IsBroadcast(call)),
      rank_(rank),
      num_ranks_(num_ranks),
      segment_bytes_(SegmentBytes(call)),
      bytes_(call.block_bytes()),
      first_(first),
      segments_(Rows(call)),
      packed_call_(kOfStreams | PackedWithoutCount(call)),
      past_cache_(ResultBytes(call, num_ranks) >= kMoreThanCached),
      all_done_(all_done) {}

bool BoardStream::RowIsFree(uint64_t row) {
  if (row > all_done_ + BoardSlot::kBlockRows) all_done_ = area_.DoneByAll();
  return row <= all_done_ + BoardSlot::kBlockRows;
}

int64_t BoardStream::BytesOf(uint64_t segment) const {
  return std::min(segment_bytes_, bytes_ - static_cast<int64_t>(segment) * segment_bytes_);
}

void BoardStream::Store(std::byte* to, const std::byte* from, int64_t bytes) const {
  if (!past_cache_) return CopyMemory(to, from, static_cast<size_t>(bytes));
  CopyPastCache(to, from, static_cast<size_t>(bytes));
  EndCopiesPastCache();
}

int64_t BoardStream::WriteNext() {
  const uint64_t row = first_ + written_;
  if (written_ == segments_ || !RowIsFree(row)) return 0;
  const int64_t at = static_cast<int64_t>(written_) * segment_bytes_, bytes = BytesOf(written_);
  const std::byte* from = Advanced(call_.input, at);
  CopyMemory(BlockOf(row, rank_), from, static_cast<size_t>(bytes));
  // Its own, while it is in the cache; in place it may be there already.
  std::byte* own = Advanced(call_.output, (has_root_ ? 0 : bytes_ * rank_) + at);
  if (own != from) Store(own, from, bytes);
  BoardSlot& mine = area_.slot(row, rank_);
  mine.call = packed_call_;
  std::memcpy(mine.data.data(), &call_.count, sizeof(call_.count));
  mine.sequence.store(row);
  ++written_;
  if (!Reads()) EndRow(row);
  lanes_.WakeOthers();
  return bytes;
}

bool BoardStream::CheckCallOf(const BoardSlot& slot, int32_t rank) {
  int64_t count = 0;
  std::memcpy(&count, slot.data.data(), sizeof(count));
  if (slot.call == packed_call_ && count == call_.count) return true;
  health_ = MakeError(
      ErrorCode::kPeerFailed,
      fmt::format(
          "rank {} runs call {:016x} of {} elements, this rank runs call {:016x} of {}: the "
          "ranks do not run the same",
          rank, slot.call, count, packed_call_, call_.count));
  return false;
}

int64_t BoardStream::ReadNext() {
  if (read_ == segments_ || !Reads() || !health_) return 0;
  const uint64_t row = first_ + read_;
  const int64_t at = static_cast<int64_t>(read_) * segment_bytes_, bytes = BytesOf(read_);
  int64_t moved = 0;
  // Not all from the same one at once.
  const int32_t writers = has_root_ ? 1 : num_ranks_ - 1;
  for (; seen_ < writers; ++seen_) {
    const int32_t from = has_root_ ? call_.root : (rank_ + 1 + seen_) % num_ranks_;
    const BoardSlot& slot = area_.slot(row, from);
    if (slot.sequence.load() != row || !CheckCallOf(slot, from)) return moved;
    Store(Advanced(call_.output, (has_root_ ? 0 : bytes_ * from) + at), BlockOf(row, from), bytes);
    moved += bytes;
  }
  // A row is over for this rank when it has written its own part as well.
  if (Writes() && written_ <= read_) return moved;
  seen_ = 0;
  ++read_;
  EndRow(row);
  lanes_.WakeOthers();
  return moved;
}

void BoardStream::EndRow(uint64_t row) { area_.bell(rank_).board_done.store(row); }

Interpreter::Outcome BoardStream::Poll(int64_t budget) {
  bool moved = false;
  while (budget > 0) {
    const int64_t bytes = (Writes() ? WriteNext() : 0) + ReadNext();
    if (bytes == 0) break;
    moved = true;
    budget -= bytes;
  }
  if ((!Writes() || written_ == segments_) && (!Reads() || read_ == segments_))
    return Interpreter::Outcome::kOver;
  return moved ? Interpreter::Outcome::kMoved : Interpreter::Outcome::kStuck;
}

}  // namespace tutti

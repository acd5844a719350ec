#include "ring_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tcp_frames.h"

namespace tutti {
namespace {

constexpr uint64_t kLine = 64;
// Copied before the receiver is told: it works on one part while the next is written.
constexpr size_t kPart = 32 * 1024;

constexpr uint64_t InLines(uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

tl::unexpected<Error> PeerFailed(const std::string& name, const std::string& what) {
  return MakeError(ErrorCode::kPeerFailed, fmt::format("{}: {}", name, what));
}

}  // namespace

// --- Sender --------------------------------------------------------------------------------------

size_t RingSender::Room() {
  if (written_ - read_ == channel_.capacity) {
    read_ = channel_.state->read.load();
    if (written_ - read_ > channel_.capacity) {
      health_ = PeerFailed(channel_.name, "the receiver has read what was not written");
      read_ = written_ - channel_.capacity;
    }
  }
  const uint64_t free = channel_.capacity - (written_ - read_);
  const uint64_t to_end = channel_.capacity - written_ % channel_.capacity;
  return static_cast<size_t>(std::min(free, to_end));
}

void RingSender::BeginMessage(std::byte* line) {
  const Posted& posted = window_[released_ % kWindow];
  tcp::PutWord(posted.signature, line);
  tcp::PutWord(released_, line + 8);
  written_ += kLine;
  begun_ = true;
  cursor_ = {};
  body_bytes_ = posted.saved ? static_cast<int64_t>(posted.copy.size()) : posted.source.Bytes();
}

size_t RingSender::CopyOut(std::byte* to, size_t most) {
  const Posted& posted = window_[released_ % kWindow];
  const Piece& source = posted.source;
  const int64_t size = source.element_bytes;
  const int64_t budget = static_cast<int64_t>(most) / size * size;
  if (posted.saved) {
    const int64_t bytes = std::min(budget, body_bytes_ - cursor_.bytes);
    std::memcpy(to, posted.copy.data() + cursor_.bytes, static_cast<size_t>(bytes));
    cursor_.bytes += bytes;
    return static_cast<size_t>(bytes);
  }
  int64_t copied = 0;
  for (; cursor_.segment < source.segments.size(); ++cursor_.segment, cursor_.elements = 0) {
    const Segment& segment = source.segments[cursor_.segment];
    const ElementRange range = source.RangeOf(segment);
    const int64_t first = range.first + cursor_.elements;
    const int64_t left = range.last - first;
    const int64_t count = std::min(left, (budget - copied) / size);
    if (count > 0) {
      std::memcpy(to + copied, segment.src.In(*source.binding) + first * size,
                  static_cast<size_t>(count * size));
      cursor_.elements += count;
      cursor_.bytes += count * size;
      copied += count * size;
    }
    if (count < left) break;
  }
  return static_cast<size_t>(copied);
}

void RingSender::Publish() {
  channel_.state->written.store(written_);
  channel_.wake_receiver->Wake(WaitsFor::kForMessages);
}

bool RingSender::Advance() {
  const uint64_t before = written_;
  uint64_t published = written_;
  while (released_ < posted_ && health_) {
    std::byte* at = channel_.bytes + written_ % channel_.capacity;
    const size_t room = Room();
    if (!begun_) {
      if (room < kLine) break;
      BeginMessage(at);
    } else {
      const size_t copied = CopyOut(at, std::min(room, kPart));
      if (copied == 0) break;
      written_ += copied;
      if (cursor_.bytes == body_bytes_) written_ = InLines(written_);
    }
    if (cursor_.bytes == body_bytes_) {
      window_[released_ % kWindow].copy.clear();
      ++released_;
      begun_ = false;
    }
    if (written_ - published >= kPart) {
      Publish();
      published = written_;
    }
  }
  if (written_ != published) Publish();
  return written_ != before;
}

bool RingSender::TryPost(const Piece& source) {
  if (posted_ - released_ >= kWindow) return false;
  Posted& posted = window_[posted_ % kWindow];
  posted.source = source;
  posted.signature = *channel_.signature;
  posted.saved = false;
  ++posted_;
  Advance();
  return true;
}

bool RingSender::Save(uint64_t message, const Piece& source) {
  if (message < released_) return true;
  Posted& posted = window_[message % kWindow];
  posted.copy.resize(static_cast<size_t>(source.Bytes()));
  Pack(source, posted.copy.data());
  posted.saved = true;
  return true;
}

// --- Receiver ------------------------------------------------------------------------------------

size_t RingReceiver::Available() {
  if (written_ == read_) {
    written_ = channel_.state->written.load();
    if (written_ - read_ > channel_.capacity) {
      health_ = PeerFailed(channel_.name, "the sender has written more than there is room for");
      written_ = read_;
    }
  }
  const uint64_t to_end = channel_.capacity - read_ % channel_.capacity;
  return static_cast<size_t>(std::min(written_ - read_, to_end));
}

void RingReceiver::Consume(uint64_t bytes) {
  read_ += bytes;
  channel_.state->read.store(read_);
  channel_.wake_sender->Wake(WaitsFor::kForAnything);
}

bool RingReceiver::ReadHeader() {
  if (Available() < kLine) return false;
  const std::byte* line = channel_.bytes + read_ % channel_.capacity;
  const uint64_t signature = tcp::WordAt(line), message = tcp::WordAt(line + 8);
  if (message != received_ || signature != *channel_.signature) {
    health_ = PeerFailed(
        channel_.name,
        fmt::format("got message {} of call {:016x}, wanted message {} of call {:016x}: the ranks "
                    "do not run the same",
                    message, signature, received_, *channel_.signature));
    return false;
  }
  read_ += kLine;
  header_seen_ = true;
  cursor_ = {};
  return true;
}

Progress RingReceiver::TryTake(const Target& target, int64_t& budget) {
  const int64_t before = budget, size = target.piece.element_bytes;
  if (!health_ || (!header_seen_ && !ReadHeader())) return Progress::kNothing;
  const int64_t body = target.piece.Bytes();
  while (cursor_.bytes < body && budget >= size) {
    const auto available = static_cast<int64_t>(Available());
    const int64_t most = std::min({available, body - cursor_.bytes, budget});
    if (most < size) break;
    const int64_t start = cursor_.bytes;
    int64_t left = most;
    MovePacked(channel_.bytes + read_ % channel_.capacity, target, cursor_, left);
    const auto moved = static_cast<uint64_t>(cursor_.bytes - start);
    budget -= static_cast<int64_t>(moved);
    Consume(cursor_.bytes == body ? InLines(read_ + moved) - read_ : moved);
  }
  if (cursor_.bytes < body) return budget < before ? Progress::kPart : Progress::kNothing;
  if (body == 0) Consume(0);
  ++received_;
  header_seen_ = false;
  return Progress::kDone;
}

}  // namespace tutti

#include "ring_connection.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "tcp_frames.h"
#include "tutti/base/clock.h"
#include "tutti/base/copy.h"

namespace tutti {
namespace {

constexpr uint64_t kLine = 64;
constexpr int64_t kMaxElementBytes = 8;
// Copied before the receiver is told: it works on one part while the next is written.
constexpr size_t kPart = size_t{32} << 10;

// What follows the number of a message in its header.
constexpr uint64_t kCached = 0, kReferenced = 1, kStreamed = 2;

constexpr uint64_t InLines(uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// What is read from another process to be reduced stays in the cache.
constexpr int64_t kStagingBytes = int64_t{64} << 10;

// Where the data of a piece begins if it is contiguous, else null.
const std::byte* InOnePiece(const Piece& piece) {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  for (const Segment& segment : piece.segments) {
    const ElementRange range = piece.RangeOf(segment);
    if (range.first == range.last) continue;
    const std::byte* base = segment.src.In(*piece.binding);
    const std::byte* first = base + range.first * piece.element_bytes;
    if (begin == nullptr)
      begin = first;
    else if (first != end)
      return nullptr;
    end = base + range.last * piece.element_bytes;
  }
  return begin;
}

tl::unexpected<Error> PeerFailed(const std::string& name, const std::string& what) {
  return MakeError(ErrorCode::kPeerFailed, fmt::format("{}: {}", name, what));
}

}  // namespace

// --- Sender --------------------------------------------------------------------------------------

size_t RingSender::Room() {
  const uint64_t least = begun_ ? static_cast<uint64_t>(kMaxElementBytes) : kLine;
  if (channel_.capacity - (written_ - read_) < least) {
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
  Posted& posted = window_[sent_ % kWindow];
  begun_ = true;
  cursor_ = {};
  body_bytes_ = posted.saved ? static_cast<int64_t>(posted.copy.size()) : posted.source.Bytes();
  const int64_t from = channel_.reference_bytes != nullptr ? *channel_.reference_bytes : 0;
  const bool large = from > 0 && body_bytes_ >= from;
  const std::byte* piece = large && !posted.saved ? InOnePiece(posted.source) : nullptr;
  posted.referenced = piece != nullptr;
  if (posted.referenced) {
    RingState::Reference& reference = channel_.state->references[sent_ % kWindow];
    reference.address.store(reinterpret_cast<uint64_t>(piece));
    reference.claim.store(RingState::Claim::kOpen);
    cursor_.bytes = body_bytes_;  // nothing to copy
  }
  tcp::PutWord(posted.signature, line);
  tcp::PutWord(sent_, line + 8);
  streams_ = (channel_.state->to_stream.load() & CopyChoice::BitOf(body_bytes_)) != 0;
  tcp::PutWord(posted.referenced ? kReferenced : streams_ ? kStreamed : kCached, line + 16);
  written_ += kLine;
}

size_t RingSender::CopyOut(std::byte* to, size_t most) {
  const Posted& posted = window_[sent_ % kWindow];
  const Piece& source = posted.source;
  const int64_t size = source.element_bytes;
  const int64_t budget = static_cast<int64_t>(most) / size * size;
  if (posted.saved) {
    const int64_t bytes = std::min(budget, body_bytes_ - cursor_.bytes);
    CopyMemory(to, posted.copy.data() + cursor_.bytes, static_cast<size_t>(bytes));
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
      const std::byte* from = segment.src.In(*source.binding) + first * size;
      const auto bytes = static_cast<size_t>(count * size);
      if (streams_)
        CopyPastCache(to + copied, from, bytes);
      else
        CopyMemory(to + copied, from, bytes);
      cursor_.elements += count;
      cursor_.bytes += count * size;
      copied += count * size;
    }
    if (count < left) break;
  }
  if (streams_) EndCopiesPastCache();
  return static_cast<size_t>(copied);
}

void RingSender::Publish() {
  channel_.state->written.store(written_);
  channel_.wake_receiver->Wake(WaitsFor::kForMessages);
}

bool RingSender::Advance() {
  const uint64_t before = written_;
  uint64_t published = written_;
  while (sent_ < posted_ && health_) {
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
      ++sent_;
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

uint64_t RingSender::released() const {
  while (released_ < sent_ &&
         (!window_[released_ % kWindow].referenced || channel_.state->taken.load() > released_))
    ++released_;
  return released_;
}

bool RingSender::TryPost(const Piece& source) {
  if (posted_ - released() >= kWindow) return false;
  Posted& posted = window_[posted_ % kWindow];
  posted.Post(source, *channel_.signature);
  posted.referenced = false;
  ++posted_;
  Advance();
  return true;
}

bool RingSender::Save(uint64_t message, const Piece& source) {
  Posted& posted = window_[message % kWindow];
  const bool referenced = message < sent_ && posted.referenced;
  if (message < sent_ && !referenced) return true;
  RingState::Reference& reference = channel_.state->references[message % kWindow];
  auto found = RingState::Claim::kOpen;
  if (referenced && !reference.claim.compare_exchange_strong(found, RingState::Claim::kSaving))
    return false;
  posted.Save(source);
  if (referenced) {
    reference.address.store(reinterpret_cast<uint64_t>(posted.copy.data()));
    reference.claim.store(RingState::Claim::kSaved);
    channel_.wake_receiver->Wake(WaitsFor::kForMessages);
  }
  return true;
}

void RingSender::Revoke() {
  channel_.state->revoked.store(1);
  while (channel_.state->reading.load() != 0) std::this_thread::yield();
}

// --- Receiver ------------------------------------------------------------------------------------

size_t RingReceiver::Available(uint64_t least) {
  if (written_ - read_ < least) {
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
  if (Available(kLine) < kLine) return false;
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
  const uint64_t way = tcp::WordAt(line + 16);
  referenced_ = way == kReferenced;
  streamed_ = way == kStreamed;
  claimed_ = false;
  if (referenced_)
    Consume(kLine);
  else
    read_ += kLine;
  header_seen_ = true;
  cursor_ = {};
  return true;
}

void RingReceiver::TakeFromRing(const Target& target, int64_t body, int64_t& budget) {
  const int64_t size = target.piece.element_bytes;
  while (cursor_.bytes < body && budget >= size) {
    const auto available = static_cast<int64_t>(Available(static_cast<uint64_t>(size)));
    const int64_t most = std::min({available, body - cursor_.bytes, budget});
    if (most < size) return;
    const int64_t start = cursor_.bytes;
    int64_t left = most;
    MovePacked(channel_.bytes + read_ % channel_.capacity, target, cursor_, left);
    const auto moved = static_cast<uint64_t>(cursor_.bytes - start);
    budget -= static_cast<int64_t>(moved);
    Consume(cursor_.bytes == body ? InLines(read_ + moved) - read_ : moved);
  }
  if (body == 0) Consume(0);
}

bool RingReceiver::Claim() {
  RingState::Reference& reference = channel_.state->references[received_ % kWindow];
  auto found = RingState::Claim::kOpen;
  const bool taken = reference.claim.compare_exchange_strong(found, RingState::Claim::kTaken);
  if (!taken && found != RingState::Claim::kSaved) return false;
  address_ = reference.address.load();
  claimed_ = true;
  return true;
}

void RingReceiver::CountTime(int64_t bytes) {
  const uint32_t before = choice_.streamed();
  choice_.Add(bytes, streamed_, NowNs() - header_ns_);
  if (choice_.streamed() != before) channel_.state->to_stream.store(choice_.streamed());
}

bool RingReceiver::ReadSender(std::byte* to, int64_t at, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    const iovec into{to + done, static_cast<size_t>(bytes - done)};
    const iovec from{reinterpret_cast<void*>(address_ + static_cast<uint64_t>(at + done)),
                     into.iov_len};
    const ssize_t read =
        process_vm_readv(static_cast<pid_t>(channel_.sender_process), &into, 1, &from, 1, 0);
    if (read <= 0) {
      health_ =
          PeerFailed(channel_.name, fmt::format("cannot read the memory of {}: {}", channel_.sender,
                                                read < 0 ? std::strerror(errno) : "it ends there"));
      return false;
    }
    done += read;
  }
  return true;
}

// Either the sender sees that it is read, or this end that it is revoked: both write before they look.
bool RingReceiver::TakeOwn(const Target& target, int64_t& budget) {
  channel_.state->reading.store(1);
  const bool may = channel_.state->revoked.load() == 0;
  if (may)
    MovePacked(reinterpret_cast<const std::byte*>(address_) + cursor_.bytes, target, cursor_,
               budget);
  channel_.state->reading.store(0);
  return may;
}

void RingReceiver::TakeReferenced(const Target& target, int64_t body, int64_t& budget) {
  const int64_t size = target.piece.element_bytes;
  while (cursor_.bytes < body && budget >= size) {
    const Segment& segment = target.piece.segments[cursor_.segment];
    const ElementRange range = target.piece.RangeOf(segment);
    const int64_t first = range.first + cursor_.elements;
    const int64_t most = std::min((range.last - first) * size, budget / size * size);
    if (most == 0) {  // the end of a segment
      ++cursor_.segment;
      cursor_.elements = 0;
      continue;
    }
    int64_t bytes = most;
    if (target.reduce != nullptr) {
      bytes = std::min(most, kStagingBytes);
      staging_.resize(kStagingBytes);
      if (!ReadSender(staging_.data(), cursor_.bytes, bytes)) return;
      int64_t left = bytes;
      MovePacked(staging_.data(), target, cursor_, left);
    } else {
      if (!ReadSender(segment.dst.In(*target.piece.binding) + first * size, cursor_.bytes, bytes))
        return;
      cursor_.elements += bytes / size;
      cursor_.bytes += bytes;
    }
    budget -= bytes;
  }
}

Progress RingReceiver::TryTake(const Target& target, int64_t& budget) {
  const int64_t before = budget;
  const bool begins = !header_seen_;
  if (!health_ || (begins && !ReadHeader())) return Progress::kNothing;
  const int64_t body = target.piece.Bytes();
  const bool is_timed = !referenced_ && CopyChoice::BitOf(body) != 0;
  if (begins && is_timed) header_ns_ = NowNs();
  if (!referenced_)
    TakeFromRing(target, body, budget);
  else if (claimed_ || Claim()) {
    const bool is_own = channel_.sender_process == getpid();
    if (!is_own) TakeReferenced(target, body, budget);
    if (is_own ? !TakeOwn(target, budget) : channel_.state->revoked.load() != 0) {
      health_ = PeerFailed(channel_.name, fmt::format("{} has given up", channel_.sender));
      return Progress::kNothing;
    }
  }
  if (cursor_.bytes < body || (referenced_ && !claimed_))
    return budget < before ? Progress::kPart : Progress::kNothing;
  ++received_;
  header_seen_ = false;
  if (is_timed) CountTime(body);
  if (referenced_) {
    channel_.state->taken.store(received_);
    channel_.wake_sender->Wake(WaitsFor::kForAnything);
  }
  return Progress::kDone;
}

}  // namespace tutti

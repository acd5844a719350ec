// LocalConnection: both ends of a connection between two ranks that one daemon serves: the receiver reads the
// sender's buffer.
//
// Errors      Ranks that call different things fail it.
// Threads     The daemon's, which polls both ranks, and its helpers within a call.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "connection.h"
#include "move_helpers.h"

namespace tutti::service {

class LocalConnection final : public Connection {
 public:
  // The signatures of the calls that sender and receiver are at; both must outlive it.
  // `helpers` take parts of large messages; null: there are none.
  LocalConnection(std::string name, const uint64_t& sender, const uint64_t& receiver,
                  MoveHelpers* helpers = nullptr)
      : name_(std::move(name)), sender_(sender), receiver_(receiver), helpers_(helpers) {}

  bool TryPost(const Piece& source) override {
    if (posted_ - released_ >= kWindow) return false;
    Posted& posted = window_[posted_ % kWindow];
    posted.source = source;
    posted.signature = sender_;
    posted.is_saved = false;
    ++posted_;
    return true;
  }

  uint64_t released() const override { return released_; }

  bool Save(uint64_t message, const Piece& source) override {
    if (message == released_ && taking_) return false;
    Posted& posted = window_[message % kWindow];
    if (posted.is_saved) return true;
    posted.saved.resize(static_cast<size_t>(source.Bytes()));
    Pack(source, posted.saved.data());
    posted.is_saved = true;
    return true;
  }

  Progress TryTake(const Target& target, int64_t& budget) override {
    if (released_ == posted_ || !health_) return Progress::kNothing;
    Posted& posted = window_[released_ % kWindow];
    if (!taking_ && posted.signature != receiver_) {
      health_ = MakeError(ErrorCode::kPeerFailed,
                          fmt::format("{}: the ranks do not run the same", name_));
      return Progress::kNothing;
    }
    taking_ = true;
    const int64_t left = std::min(budget, target.piece.Bytes() - cursor_.bytes);
    const bool shared = helpers_ != nullptr && left >= helpers_->options().min_bytes;
    const bool done =
        shared ? MoveTogether(posted, target, left, budget) : Take(posted, target, cursor_, budget);
    if (!done) return Progress::kPart;
    taking_ = false;
    cursor_ = {};
    ++released_;
    return Progress::kDone;
  }

  Status health() const override { return health_; }

 private:
  struct Posted {
    Piece source;
    uint64_t signature = 0;
    bool is_saved = false;
    std::vector<std::byte> saved;
  };

  static bool Take(const Posted& posted, const Target& target, Cursor& cursor, int64_t& budget) {
    return posted.is_saved ? MovePacked(posted.saved.data() + cursor.bytes, target, cursor, budget)
                           : Move(posted.source, target, cursor, budget);
  }
  // `bytes` of it in parts, each from a cursor of its own.
  bool MoveTogether(const Posted& posted, const Target& target, int64_t bytes, int64_t& budget) {
    const Piece& piece = target.piece;
    const int64_t size = piece.element_bytes;
    const int64_t part_bytes = std::max(helpers_->options().part_bytes / size, int64_t{1}) * size;
    bytes -= bytes % size;
    std::vector<Cursor> from;
    for (int64_t at = 0; at < bytes; at += part_bytes) {
      from.push_back(cursor_);
      Skip(piece, std::min(part_bytes, bytes - at), cursor_);
    }
    helpers_->ForParts(static_cast<int32_t>(from.size()), [&](int32_t part) {
      int64_t left = std::min(part_bytes, bytes - part * part_bytes);
      Take(posted, target, from[static_cast<size_t>(part)], left);
    });
    budget -= bytes;
    return cursor_.bytes == piece.Bytes();
  }
  // As if so many bytes, whole elements, had been moved.
  static void Skip(const Piece& piece, int64_t bytes, Cursor& cursor) {
    for (int64_t elements = bytes / piece.element_bytes; elements > 0;) {
      const ElementRange range = piece.RangeOf(piece.segments[cursor.segment]);
      const int64_t here = std::min(elements, range.last - range.first - cursor.elements);
      cursor.elements += here;
      cursor.bytes += here * piece.element_bytes;
      elements -= here;
      if (elements == 0) break;
      ++cursor.segment;
      cursor.elements = 0;
    }
  }

  std::string name_;
  const uint64_t& sender_;
  const uint64_t& receiver_;
  MoveHelpers* helpers_;
  std::array<Posted, kWindow> window_;
  uint64_t posted_ = 0, released_ = 0;
  bool taking_ = false;
  Cursor cursor_;  // of the message that is being taken
  Status health_;
};

}  // namespace tutti::service

// LocalConnection: both ends of a connection between two ranks that one daemon serves: the receiver reads the
// sender's buffer.
//
// Errors      Ranks that call different things fail it.
// Threads     The daemon's, which polls both ranks.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "connection.h"

namespace tutti::service {

class LocalConnection final : public Connection {
 public:
  // The signatures of the calls that sender and receiver are at; both must outlive it.
  LocalConnection(std::string name, const uint64_t& sender, const uint64_t& receiver)
      : name_(std::move(name)), sender_(sender), receiver_(receiver) {}

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
    const bool done = posted.is_saved
                          ? MovePacked(posted.saved.data() + cursor_.bytes, target, cursor_, budget)
                          : Move(posted.source, target, cursor_, budget);
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

  std::string name_;
  const uint64_t& sender_;
  const uint64_t& receiver_;
  std::array<Posted, kWindow> window_;
  uint64_t posted_ = 0, released_ = 0;
  bool taking_ = false;
  Cursor cursor_;  // of the message that is being taken
  Status health_;
};

}  // namespace tutti::service

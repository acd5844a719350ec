// Messages of an input that pass a TCP connection: what each holds, a buffer that one is sent from or taken into, and what the
// fuzzers of both ends do alike.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <span>
#include <vector>

#include "runtime/piece.h"
#include "runtime/tcp_frames.h"

namespace tutti::fuzz {

inline constexpr int64_t kElementBytes = 4;
inline constexpr tcp::Hello kHello{
    .communicator = 7, .epoch = 1, .cookie = {11, 13}, .sender = 3, .receiver = 5, .channel = 2};
inline constexpr uint64_t kSignature = 0x5155'4341'4c4c;
inline constexpr double kForEver_s = 1e9;

inline void Check(bool holds) {
  if (!holds) std::abort();
}
// Tells the ends what their sockets are ready for.
inline void TakeEvents(int epoll, int wait_ms) {
  std::array<epoll_event, 8> events;
  const int count = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), wait_ms);
  for (const epoll_event& event : std::span(events).first(static_cast<size_t>(std::max(0, count))))
    *static_cast<uint32_t*>(event.data.ptr) |= event.events;
}
// The first of `bytes`, until `to` has so many.
inline void MoveUntil(size_t until, std::span<const std::byte>& bytes, std::vector<std::byte>& to) {
  const size_t more = std::min(bytes.size(), until - to.size());
  to.insert(to.end(), bytes.begin(), bytes.begin() + static_cast<int64_t>(more));
  bytes = bytes.subspan(more);
}

// Of each message, in turn: none, fewer bytes than a receiver reads straight into their place, or more.
inline int64_t ElementsOf(uint64_t message) {
  constexpr std::array<int64_t, 5> kElements = {3, 1024, 0, 50, 2000};
  return kElements[message % kElements.size()];
}
inline size_t BytesOf(uint64_t message) {
  return static_cast<size_t>(ElementsOf(message) * kElementBytes);
}
// No byte is as the one before it, nor as the same one of the next message.
inline std::byte ByteOf(uint64_t message, size_t at) {
  return static_cast<std::byte>(at * 31 + at / 256 * 7 + message * 101 + 1);
}
// Made once. What was returned stays.
inline const std::vector<std::byte>& ContentOf(uint64_t message) {
  static std::deque<std::vector<std::byte>> contents;
  while (contents.size() <= message) {
    auto& content = contents.emplace_back(BytesOf(contents.size()));
    for (size_t at = 0; at < content.size(); ++at) content[at] = ByteOf(contents.size() - 1, at);
  }
  return contents[message];
}

inline std::array<std::byte, tcp::kHeaderBytes> HeaderOf(uint64_t message,
                                                         uint64_t signature = kSignature) {
  std::array<std::byte, tcp::kHeaderBytes> header{};
  tcp::PutWord(signature, header.data());
  tcp::PutWord(message, header.data() + 8);
  return header;
}

// In two segments with something between them.
class MessageBuffer {
 public:
  explicit MessageBuffer(uint64_t message)
      : first_(ElementsOf(message) / 3),
        last_(ElementsOf(message) - first_),
        memory_(BytesOf(message) + 3 * kGuardBytes, kGuard) {
    binding_.base.fill(memory_.data() + kGuardBytes);
    const int64_t of_last = first_ * kElementBytes + static_cast<int64_t>(kGuardBytes);
    segments_[0] = {.src = {0}, .dst = {0}, .elements = first_, .first_unit = 0, .last_unit = 1};
    segments_[1] = {
        .src = {of_last}, .dst = {of_last}, .elements = last_, .first_unit = 0, .last_unit = 1};
  }
  MessageBuffer(const MessageBuffer&) = delete;
  MessageBuffer& operator=(const MessageBuffer&) = delete;

  Piece piece() const {
    return {.segments = segments_,
            .binding = &binding_,
            .element_bytes = static_cast<int32_t>(kElementBytes)};
  }
  void Fill(const std::vector<std::byte>& content) {
    const auto of_first = static_cast<size_t>(first_ * kElementBytes);
    std::copy_n(content.begin(), of_first, memory_.data() + kGuardBytes);
    std::copy(content.begin() + static_cast<int64_t>(of_first), content.end(),
              memory_.data() + of_first + 2 * kGuardBytes);
  }
  std::vector<std::byte> Content() const {
    const std::byte* start = memory_.data() + kGuardBytes;
    std::vector<std::byte> content(start, start + first_ * kElementBytes);
    start += first_ * kElementBytes + static_cast<int64_t>(kGuardBytes);
    content.insert(content.end(), start, start + last_ * kElementBytes);
    return content;
  }
  bool HasItsGuards() const {
    const std::byte* start = memory_.data();
    for (const int64_t bytes : {int64_t{0}, first_ * kElementBytes, last_ * kElementBytes}) {
      start += bytes;
      for (size_t i = 0; i < kGuardBytes; ++i)
        if (*start++ != kGuard) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuardBytes = 16;
  static constexpr std::byte kGuard{0xa5};

  int64_t first_, last_;  // elements of the segments
  std::vector<std::byte> memory_;
  Binding binding_;
  std::array<Segment, 2> segments_;
};

}  // namespace tutti::fuzz

// SharedConnection: an end of a connection between ranks that see each other's buffers: processes
// with one mapping, or threads.
//
// Model       `posted` is counted by the sender, `acked` by the receiver, both for ever. The
//             receiver claims a message and reads the sender's buffer; where the sender has to
//             overwrite that first, it claims the message and saves it to a bounce buffer.
// Threads     Atomics are the only words that two ranks touch at once; buffers are handed over by
//             posted (release of the source) and acked (release of the reader).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "connection.h"

namespace tutti {

enum class Claim : uint32_t { kOpen, kTaken, kSaving, kSaved };

struct ConnectionState {
  alignas(64) std::atomic<uint64_t> posted{0};
  alignas(64) std::atomic<uint64_t> acked{0};
  alignas(64) std::atomic<Claim> claim[kWindow]{};
};

// What both ends have in common. All of it must outlive them.
struct SharedChannel {
  ConnectionState* state = nullptr;
  std::byte* bounces = nullptr;  // kBounces of the largest message
  int64_t largest_message = 0;
  const Program* program = nullptr;
  int32_t sender = 0, sender_stream = 0;
  const Binding* sender_binding = nullptr;
  Waker* wake_sender = nullptr;
  Waker* wake_receiver = nullptr;
};

class SharedConnection final : public Connection {
 public:
  explicit SharedConnection(const SharedChannel& channel) : channel_(channel) {}

  bool TryPost(const Piece& source) override;
  uint64_t released() const override { return channel_.state->acked.load(); }
  bool Save(uint64_t message, const Piece& source) override;
  Progress TryTake(const Target& target, int64_t& budget) override;

 private:
  std::byte* BounceOf(uint64_t message) const {
    return channel_.bounces + static_cast<int64_t>(message % kBounces) * channel_.largest_message;
  }
  // False: there is no message, or the sender is saving it.
  bool Begin();

  SharedChannel channel_;
  uint64_t posted_ = 0;    // by this end
  uint64_t received_ = 0;  // by this end
  bool taking_ = false, saved_ = false;
  Piece source_;  // of the message being taken
  Cursor cursor_;
};

}  // namespace tutti

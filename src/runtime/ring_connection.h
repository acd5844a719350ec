// RingConnection: the two ends of a connection between ranks of one host that do not see each other's
// buffers: a ring of bytes in memory that both map.
//
// Model       The sender copies messages into the ring, each behind a line with its number and the
//             signature of its call; the receiver reduces or copies straight out of the ring. Such a
//             message is released when it is in the ring whole: the ring outlives the sender's interest.
//             Two cores copy at once, and what is between them stays in their caches, or is streamed past them where the receiver
//             has found that it takes less (copy_choice.h). Where the sender would be copying for many
//             receivers, a large message in one piece is only *referenced*, if they may read its memory: it is claimed
//             and copied once, by the receiver (process_vm_readv, or plainly within a process), and released when that is
//             done. As in shared_connection.h the sender may claim it first and save it elsewhere.
//             A sender whose operation has failed revokes what it referenced before its caller has the memory back: what was
//             read since does not count, and a receiver of the same process is waited for while it reads.
//             Both `written` and `read` grow for ever; lines of 64 bytes keep every element of a message
//             at a multiple of its size.
// Trust       Whoever maps the ring may write anything into it: bytes are only ever copied or reduced,
//             counts are checked to be possible, and a wrong header is an error.
// Errors      kPeerFailed: the message is of another call, or counts are not possible.
// Threads     Each end belongs to one thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "connection.h"
#include "copy_choice.h"
#include "posted_message.h"

namespace tutti {

struct RingState {
  enum class Claim : uint32_t { kOpen, kTaken, kSaving, kSaved };
  struct Reference {
    std::atomic<Claim> claim{Claim::kOpen};
    std::atomic<uint64_t> address{0};  // in the sender's process
  };

  alignas(64) std::atomic<uint64_t> written{0};  // bytes, by the sender
  std::atomic<uint32_t> revoked{0};  // by the sender, for ever: references are no longer to be read
  alignas(64) std::atomic<uint64_t> read{0};  // bytes, by the receiver
  std::atomic<uint64_t> taken{0};    // messages, by the receiver; stored where one was referenced
  std::atomic<uint32_t> reading{0};  // by a receiver of the sender's process: it reads a reference
  std::atomic<uint32_t> to_stream{0};  // by the receiver: size classes (copy_choice.h)
  alignas(64) std::array<Reference, kWindow> references{};
};

// What both ends have in common. All of it must outlive them.
struct RingChannel {
  RingState* state = nullptr;
  std::byte* bytes = nullptr;
  uint64_t capacity = 0;  // a power of two, at least 4096
  Waker* wake_sender = nullptr;
  Waker* wake_receiver = nullptr;
  // Signature of the call that runs; each end has its own.
  const uint64_t* signature = nullptr;
  // From this size on messages of the call that runs are referenced; null or 0: none is. Of the sender's end.
  const int64_t* reference_bytes = nullptr;
  int64_t sender_process = 0;  // its number, where messages are referenced
  std::string name;            // "connection 0 -> 1 channel 0", for errors
  std::string sender = "the sender";
};

class RingSender final : public Connection {
 public:
  explicit RingSender(const RingChannel& channel) : channel_(channel) {}

  bool TryPost(const Piece& source) override;
  uint64_t released() const override;
  bool Save(uint64_t message, const Piece& source) override;
  Progress TryTake(const Target&, int64_t&) override { return Progress::kNothing; }
  Status health() const override { return health_; }

  // Copies what the ring has room for. True: something was copied.
  bool Advance();
  // What was referenced belongs to the caller again, for good.
  void Revoke();

 private:
  struct Posted : PostedMessage {
    bool referenced = false;
  };

  // Contiguous bytes that may be written now.
  size_t Room();
  void BeginMessage(std::byte* line);
  // Copies up to `most` bytes of the message from where it stands; how many.
  size_t CopyOut(std::byte* to, size_t most);
  void Publish();

  RingChannel channel_;
  std::array<Posted, kWindow> window_;
  uint64_t posted_ = 0, sent_ = 0;   // messages; sent: copied or referenced whole
  mutable uint64_t released_ = 0;    // as last seen
  uint64_t written_ = 0, read_ = 0;  // bytes; read_ as last seen
  bool begun_ = false;               // the header of message sent_ is in the ring
  bool streams_ = false;             // it
  int64_t body_bytes_ = 0;           // of it
  Cursor cursor_;                    // in it
  Status health_;
};

class RingReceiver final : public Connection {
 public:
  explicit RingReceiver(const RingChannel& channel) : channel_(channel) {}

  bool TryPost(const Piece&) override { return false; }
  uint64_t released() const override { return 0; }
  bool Save(uint64_t, const Piece&) override { return false; }
  Progress TryTake(const Target& target, int64_t& budget) override;
  Status health() const override { return health_; }

 private:
  // Contiguous bytes that may be read now; looks at what the sender says where there are less than
  // `least`.
  size_t Available(uint64_t least);
  bool ReadHeader();
  void Consume(uint64_t bytes);
  void TakeFromRing(const Target& target, int64_t body, int64_t& budget);
  // False: the sender is saving it.
  bool Claim();
  // Plainly, from memory of this process. False: it has been revoked.
  bool TakeOwn(const Target& target, int64_t& budget);
  void TakeReferenced(const Target& target, int64_t body, int64_t& budget);
  // How long the message took that has been taken.
  void CountTime(int64_t bytes);
  // Reads from the sender's memory. False: that failed.
  bool ReadSender(std::byte* to, int64_t at, int64_t bytes);

  RingChannel channel_;
  uint64_t received_ = 0;            // messages
  uint64_t read_ = 0, written_ = 0;  // bytes; written_ as last seen
  bool header_seen_ = false, referenced_ = false, streamed_ = false, claimed_ = false;
  int64_t header_ns_ = 0;  // when it was seen
  CopyChoice choice_;
  uint64_t address_ = 0;            // of a message that was claimed
  Cursor cursor_;                   // of the message being taken
  std::vector<std::byte> staging_;  // of what is read to be reduced
  Status health_;
};

}  // namespace tutti

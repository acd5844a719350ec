// Connection: one end of the way from a sender to a receiver on a channel, whatever carries it.
//
// Model       Messages pass in order and are numbered for ever, from 0. The sender *posts* a message
//             and goes on; its source is read later, until the message is *released*: then the
//             receiver has taken all of it (acknowledged, not merely handed to a kernel), so that
//             whatever is not released still lies in place and can be sent again. Where the sender
//             must overwrite a source before (it may be the receiver that waits for this very
//             rank), it *saves* the message first, for at most kBounces messages beyond the last
//             released one. The receiver takes the oldest message, whole or in parts.
//             Nothing here blocks. Who changes something that the other end may wait for wakes it.
// Errors      health(): a failed connection says why, and neither posts nor takes any more.
// Threads     Each end belongs to one thread.
#pragma once

#include <cstdint>
#include <string>

#include "piece.h"
#include "tutti/base/result.h"

namespace tutti {

inline constexpr uint64_t kWindow = 16;  // messages posted and not released
inline constexpr uint64_t kBounces = 2;

enum class Progress : uint8_t { kNothing, kPart, kDone };

class Connection {
 public:
  virtual ~Connection() = default;

  // --- Sender
  // False: the window is full.
  virtual bool TryPost(const Piece& source) = 0;
  // Messages before this one may be overwritten.
  virtual uint64_t released() const = 0;
  // False: it cannot be saved now, as the receiver is at it. `message` has been posted, is not
  // released and is below released() + kBounces.
  virtual bool Save(uint64_t message, const Piece& source) = 0;

  // --- Receiver
  // At most `budget` bytes, which is reduced by what was taken. kPart: some of the message was
  // taken; the same target has to be given until it is done. kNothing: no byte was there to take,
  // be it of a new message or of one begun.
  virtual Progress TryTake(const Target& target, int64_t& budget) = 0;

  virtual Status health() const { return {}; }
};

// The connections of one rank to others that share no memory with it, and what drives them.
class PeerTransport {
 public:
  virtual ~PeerTransport() = default;

  // They live as long as the transport.
  virtual Connection* SendTo(int32_t peer, int32_t channel) = 0;
  virtual Connection* ReceiveFrom(int32_t peer, int32_t channel) = 0;
  // Does what can be done, waits at most `wait_ms` for that. True: something happened.
  virtual bool Poll(int wait_ms) = 0;
  // The kernel moves on what was begun, also while the rank waits elsewhere; else it has to poll there.
  virtual bool moves_by_itself() const { return true; }
  // Nothing that was posted needs another Poll() to get to its receiver.
  virtual bool is_quiet() const { return true; }
};

// What a rank waits for when it sleeps.
enum class WaitsFor : uint32_t { kNo, kForMessages, kForAnything };

class Waker {
 public:
  virtual ~Waker() = default;
  // Wakes the rank if it waits for `at_least` that much.
  virtual void Wake(WaitsFor at_least) = 0;
};

}  // namespace tutti

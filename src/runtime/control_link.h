// ControlLink: the TCP connection between a rank that runs elsewhere and its coordinator, or between a
// rank of a communicator and its root.
//
// Model       Frames: a word of 8 bytes, low byte first, with the type in the top byte and the bytes
//             of the body in the others, then the body. Bodies are words, but for plans and texts.
//             docs/formats/wire.md lists them.
// Trust       The reader takes any bytes: no frame is larger than the reader says.
// Threads     One.
// Errors      kPeerFailed: the other end is gone, sends nonsense, or does not read for 10 s.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "endpoint.h"
#include "tutti/base/result.h"

namespace tutti {

enum class FrameType : uint8_t {
  // From a rank
  kHello = 1,  // magic, secret (two words), rank, number of ranks
  kReady,      // where it listens (kEndpointWords), size of the run
  kArrived,    // at a barrier: nanoseconds of the last iteration, or -1
  kBeat,       // it gets on: a count that grows
  kResult,     // elements that are wrong
  kFailed,     // why
  // From the coordinator
  kPlan,   // a plan file
  kCall,   // what to run
  kPeers,  // where each rank listens
  kGo,     // all are at the barrier
  kAbort,  // why
  kEnd,
  // Between the ranks of a communicator and their root, beside kHello, kFailed, kAbort and kEnd
  kShare,   // what a rank says in a round
  kShared,  // what all have said: each its length and its bytes
  // Between daemons of the service: service/peer_link.h
  kDaemon,
  // From a coordinator that wants a trace: a number; back: that number and the rank's clock.
  kClock,
  // From a rank: when its last iteration began, and events of it
  kTrace,
  // From a root: a rank that has left, and what it had completed
  kLeft
};
inline constexpr FrameType kLastFrameType = FrameType::kLeft;

struct Frame {
  FrameType type = FrameType::kEnd;
  std::string body;

  // Nothing where the body is not that many words.
  std::optional<std::vector<int64_t>> Words(size_t count) const;
};

// A protocol's magic has its version in the top 16 bits. What to say to whoever speaks another version of it; nothing: it is
// this version, or no such protocol at all.
std::optional<std::string> OtherVersion(uint64_t theirs, uint64_t magic);

class ControlLink {
 public:
  explicit ControlLink(int fd);  // takes it over
  // Tries until it succeeds or `patience_s` are over. kNotFound: no such host.
  static Result<ControlLink> Connect(const std::string& host, uint16_t port, double patience_s);
  ControlLink(ControlLink&& other) noexcept;
  ControlLink& operator=(ControlLink&& other) noexcept;
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;
  ~ControlLink();

  Status Send(FrameType type, std::string_view body);
  Status Send(FrameType type, std::initializer_list<int64_t> words);
  // A frame of at most one word, unless the kernel has no room for it now.
  void SendIfRoom(FrameType type, std::string_view body);
  // The next frame, if all of it is there.
  Result<std::optional<Frame>> TryReceive(size_t largest);
  // All frames that are there. False: no more will come.
  bool Drain(size_t largest, const std::function<void(const Frame&)>& take);
  // `frame`, the last that was received, is received once more.
  void PutBack(const Frame& frame);
  // Until the other end closes, at most `patience_s`; takes and forgets what it says.
  void WaitForClose(double patience_s);
  // Waits for the next frame at most `wait_ms`.
  Result<std::optional<Frame>> Receive(size_t largest, int wait_ms);

  int fd() const { return fd_; }
  Endpoint local() const;
  // Also when it has gone.
  const Endpoint& remote() const { return remote_; }

 private:
  Status SendBytes(std::string_view bytes);

  int fd_ = -1;
  Endpoint remote_;
  std::string received_;
};

std::string WordsToBytes(const std::vector<int64_t>& words);

}  // namespace tutti

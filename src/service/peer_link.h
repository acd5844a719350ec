// PeerLink: what two daemons say to each other about one communicator.
//
// Model       Frames of a kind, words and texts, over the frames of runtime/control_link.h
//             (docs/formats/wire.md). A link is made without waiting; frames sent before it is there follow.
// Trust       Daemons trust each other; the reader takes any bytes nevertheless.
// Errors      A link that is lost calls its handler once, with why.
// Threads     The daemon's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control_link.h"
#include "event_loop.h"

namespace tutti::service {

enum class PeerKind : uint8_t {
  kJoin = 1,  // to the root: secret (2), number of ranks, rank; tenant, host
  kRefused,   // from it: rank, ErrorCode; why
  kMembers,  // from it: own index, cookie (2), a daemon each rank, then address and port of each daemon; hosts
  kRing,     // to the next daemon of the ring: secret (2), cookie (2), own index
  kBarrier,  // on the ring: epoch, origin, value
  kPrepare,  // from the root: epoch, attempt; a flow table, then names and contents of schedule files in turn
  kOpened,  // to it: epoch, attempt, whether well; then rank, address, port of each local rank; why not
  kPeers,     // from it: epoch, attempt, then address and port of each rank
  kPrepared,  // to it: epoch, attempt
  kDiscard,   // from it: epoch
  kCommit,    // from it: epoch
  kSwitched,  // to it: epoch, nanoseconds that it held
  kLeft,      // rank, operations that it completed; why
  kProgress,  // to it: rank, issued, completed, nanoseconds it waits; what for
  kFailed,    // ErrorCode; why
  kGates,     // from the root: period, phase, length in ns; when ranks may send
};
inline constexpr PeerKind kLastPeerKind = PeerKind::kGates;

struct PeerFrame {
  PeerKind kind = PeerKind::kFailed;
  std::vector<int64_t> words = {};
  std::vector<std::string> texts = {};
};

// Of two words: address and port.
inline Endpoint EndpointAt(const std::vector<int64_t>& words, size_t at) {
  return {static_cast<uint32_t>(words[at]), static_cast<uint16_t>(words[at + 1])};
}

std::string Encode(const PeerFrame& frame);
// Nothing: no frame.
std::optional<PeerFrame> Decode(std::string_view bytes);

class PeerLink {
 public:
  static constexpr size_t kMostBytes = size_t{256} << 20;

  struct Handlers {
    std::function<void(PeerFrame)> frame;
    std::function<void(const std::string& why)> lost;
  };

  PeerLink(EventLoop& loop, int fd, Handlers handlers);  // takes the socket over
  // Null: the process has no descriptor left.
  static std::unique_ptr<PeerLink> Connect(EventLoop& loop, const Endpoint& to, Handlers handlers);
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  void Send(const PeerFrame& frame);
  void SetHandlers(Handlers handlers) { handlers_ = std::move(handlers); }
  const Endpoint& remote() const { return remote_; }

 private:
  PeerLink(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  void BeConnected();
  void Listen();
  void Flush();
  void Read();
  void Lose(const std::string& why);

  EventLoop& loop_;
  Handlers handlers_;
  Endpoint remote_;
  int connecting_ = -1;
  std::optional<ControlLink> link_;
  std::string unsent_;
  bool lost_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tutti::service

// PeerLink: what two daemons say to each other about one communicator.
//
// Model       Frames of a kind, words and texts, over the frames of runtime/control_link.h
//             (docs/formats/wire.md). A link is made without waiting; frames sent before it is there follow.
// Silence     Where the network drops what is sent, without a word, the daemon that made the link makes another connection, the
//             first of several that it tries at once (redial.h), and both send again what the other has not heard: each
//             frame arrives once, in order. So it does where the first connection is not made. Frames are kept until they were heard of. Connections are numbered: what an older one
//             brings late counts no more. A connection that is closed or reset is lost at once: then the other daemon has gone.
// Enduring    A link of which others say when the other daemon has gone endures that, too: the daemon that made it makes another
//             connection, at once, then after a quarter of a second and twice as long each time, up to two seconds.
// Versions    A daemon of another version is told so and heard no more; its link is lost with both versions.
// Trust       Daemons trust each other; the reader takes any bytes nevertheless.
// Errors      A link that is lost calls its handler once, with why.
// Threads     The daemon's.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control_link.h"
#include "event_loop.h"
#include "redial.h"

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
  kLeft,  // rank, collectives that it completed, then peer, messages sent to and received from each; why
  kProgress,  // to it: rank, issued, completed, nanoseconds it waits, collectives completed, peers that it waits for; what for
  kFailed,    // ErrorCode; why
  kGates,  // from the root: period, phase, length in ns, what is held (GateHolds); when ranks may send
  // Between daemons whose ranks regroup (regrouping.h); the first of a link has the communicator's secret
  kRegroup,        // to the leader: secret (2), a rank; what it asks
  kRegroupGone,    // either way: secret (2), 0, then ranks of this daemon that have gone
  kRegrouped,      // from the leader: a rank; what becomes of it
  kRegroupNobody,  // this daemon has no rank of it
  // For the link itself, not numbered among its frames
  kLink,  // first of a connection: id of the link (2), frames heard so far, its number among the link's connections, from 0,
          // kPeerMagic; also the answer to all but the first, and to one of another version
  kHeard,  // frames heard so far
  // For ranks that are to join a communicator after they have regrouped; each the only one of its link
  kAwaited,  // from the root: secret (2), then ranks: do they live, and are they to join?
  kAbsent,   // to it: those that are not
  // Of a communicator that makes way for another one (following.h)
  kFollow,  // from the root: key (2), nanoseconds that a gate is shut at most at a stretch, what it holds
  kAnnounce,  // from the root of the other one: of each follower's daemon key (2), address and port
  kBusy,    // from its daemons, also the first of a link: key (2), whether their ranks communicate
  kClosed,  // from the root: epoch; all daemons are past those before it, which are closed now
  kRankFailed,  // as kLeft, of a rank that has failed alone, and may yet go on in another communicator
};
inline constexpr PeerKind kLastPeerKind = PeerKind::kRankFailed;

// Its version is also that of the connections between ranks: daemons that make them by other frames could not tell why nobody
// comes.
inline constexpr uint64_t kPeerMagic = 0x0002'5245'4550'5454;  // "TTPEER", version 2

struct PeerFrame {
  PeerKind kind = PeerKind::kFailed;
  std::vector<int64_t> words = {};
  std::vector<std::string> texts = {};
};

// From two words: address, of IP version 4, and port.
inline Endpoint EndpointAt(const std::vector<int64_t>& words, size_t at) {
  return {static_cast<uint32_t>(words[at]), static_cast<uint16_t>(words[at + 1])};
}

std::string Encode(const PeerFrame& frame);
// As it is sent: links share the bytes of a frame that goes to several, and keep them until it is heard.
using FrameBytes = std::shared_ptr<const std::string>;
FrameBytes Framed(const PeerFrame& frame);
// Nothing: no frame.
std::optional<PeerFrame> Decode(std::string_view bytes);

class PeerLink;
// A daemon's links: those that others made, by id.
using PeerLinks = std::map<std::array<uint64_t, 2>, PeerLink*>;

class PeerLink {
 public:
  static constexpr size_t kMostBytes = size_t{256} << 20;

  struct Handlers {
    std::function<void(PeerFrame)> frame;
    std::function<void(const std::string& why)> lost;
  };

  // Takes the socket over. `links`, which must outlive it: where it is found when the other daemon resumes it; null: it cannot be.
  PeerLink(EventLoop& loop, int fd, Handlers handlers, PeerLinks* links = nullptr);
  // Null: the process has no descriptor left.
  static std::unique_ptr<PeerLink> Connect(EventLoop& loop, const Endpoint& to, Handlers handlers);
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  void Send(const PeerFrame& frame) { Send(Framed(frame)); }
  void Send(FrameBytes frame);
  // To be called every 100 ms or so, at both ends: whose host is gone without a word shows by what it does not acknowledge. Where
  // this daemon made the link another way is tried, too.
  void Watch(int64_t now_ns);
  void SetHandlers(Handlers handlers) { handlers_ = std::move(handlers); }
  // Of both ends: a connection that is closed, reset or never made is no end of the link, and the handler of losses is not called.
  void Endure() { endures_ = true; }
  const Endpoint& remote() const { return remote_; }
  bool is_connected() const { return link_.has_value(); }
  // Why the last connection ended, of a link that endures.
  const std::string& why_lost() const { return why_lost_; }
  // Since when it has been waited for the other daemon to hear what was sent. 0: it has heard all.
  int64_t unheard_since_ns() const { return unheard_since_ns_; }
  // The other daemon has heard all that was sent, or will not.
  bool is_quiet() const { return lost_ || unheard_.empty(); }
  // Nobody listens there: the other's host says so.
  bool was_refused() const { return refused_; }

 private:
  PeerLink(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  void BeConnected();
  void Listen();
  void Flush();
  void Read();
  // The next frame that has come; nothing: there is none, or no memory for it now, or the link is lost.
  std::optional<PeerFrame> Next();
  // Error: the link is to be lost.
  Result<std::optional<PeerFrame>> TryNext();
  void Queue(FrameBytes frame) { unsent_.push_back(std::move(frame)); }
  // Nothing counts that was on its way by the connection before.
  void BeginConnection(FrameBytes frame);
  void Lose(const std::string& why);
  // Who has nothing to say has to know, too, whether the other one is heard.
  void Beat(int64_t now_ns);
  bool IsOfThisVersion(const PeerFrame& link);
  void HearLink(const PeerFrame& frame);
  void HearHeard(int64_t frames);
  // Goes on over another connection, of that number, whose other end has heard so many frames.
  void TakeOver(ControlLink link, int64_t number, int64_t heard);
  void Resend();
  PeerFrame LinkFrame() const;
  // Nothing comes back of what was sent, or of the first connection that is being made.
  bool IsSilent();
  void CloseConnecting();
  // Makes another connection, in place of one that was lost.
  void Return(int64_t now_ns);
  std::string WithFault(const std::string& why) const;
  // Another connection is there: over to it.
  void Adopt(int fd);
  void LeaveGateway();

  EventLoop& loop_;
  Handlers handlers_;
  Endpoint remote_;
  Endpoint through_;  // where the gateway takes it; port 0: nowhere
  int connecting_ = -1;
  std::optional<ControlLink> link_;
  std::deque<FrameBytes> unsent_;
  size_t sent_of_first_ = 0;        // bytes
  std::optional<Frame> undecoded_;  // has come
  bool lacks_memory_ = false;       // for a frame that comes: tries again
  bool lost_ = false, refused_ = false, endures_ = false;
  bool is_deaf_ = false;        // to a daemon of another version
  int64_t losses_in_turn_ = 0;  // since the other end was heard
  std::string why_lost_;
  int64_t next_return_ns_ = 0, unheard_since_ns_ = 0;
  std::array<uint64_t, 2>
      id_{};  // of those that this daemon made, and of those that can be resumed
  bool made_here_ = false, awaits_answer_ = false;
  int64_t number_ = 0;               // of the connection
  std::optional<ControlLink> left_;  // the connection before, until the other end has left it
  PeerLinks* links_ = nullptr;
  std::deque<FrameBytes> unheard_;
  int64_t heard_ = 0;                // frames of this end that the other has heard
  int64_t received_ = 0, told_ = 0;  // frames of the other; what it was told of that
  Redial redial_;
  int64_t next_beat_ns_ = 0;
  uint64_t acked_bytes_ = 0;
  int silent_looks_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tutti::service

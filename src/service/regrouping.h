// Regrouping: the daemons' part where ranks of a communicator that are left ask to go on as a new one
// (communicator/regroup.h): which of them live every daemon knows of its own.
//
// Model       The first daemon, in the order of the ring, that is there and has living ranks of it leads; the others
//             send it what their ranks ask, and which have gone. A daemon that has gone takes its ranks with it. The
//             leader makes the new id, so that it is the root of the new communicator. Made with the first rank that
//             asks, gone with the answer; then ranks may ask again.
// Errors      Those of Roll, and kPeerFailed where somebody who lives has not asked in time.
// Threads     The daemon's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "event_loop.h"
#include "peer_link.h"
#include "regroup.h"
#include "tutti/base/result.h"

namespace tutti::service {

class Regrouping {
 public:
  static constexpr int64_t kSilenceNs = 3'000'000'000;  // no answer: cut off

  struct Member {
    Endpoint control;
    std::vector<int32_t> ranks;
  };
  struct Party {
    std::array<uint64_t, 2> secret{};
    size_t self = 0;
    std::vector<Member> daemons;  // in the order of the ring
    int32_t num_ranks = 0;
  };
  using Answer = std::function<void(const Result<Regrouped>&)>;
  // A rank that is to join the new communicator, and its daemon.
  struct Awaited {
    int32_t rank = 0;  // of the new one
    Endpoint control;
  };
  using Await = std::function<void(const UniqueId&, std::vector<Awaited>)>;

  // `await` is told by the leader who will join, before they are told.
  Regrouping(EventLoop& loop, Party party, std::function<Result<UniqueId>()> make_id, Await await)
      : loop_(loop),
        party_(std::move(party)),
        make_id_(std::move(make_id)),
        await_(std::move(await)),
        others_(party_.daemons.size()) {}
  Regrouping(const Regrouping&) = delete;
  Regrouping& operator=(const Regrouping&) = delete;

  // A local rank asks; `until_ns` of the first counts.
  void Ask(int32_t rank, const RegroupAsk& ask, int64_t until_ns, Answer answer);
  // A local rank has gone.
  void SetGone(int32_t rank);
  // Another daemon's link, whose first frame for this communicator has been read.
  void Accept(std::unique_ptr<PeerLink> link, const PeerFrame& frame);
  // Looks for who is there. True: it is over, everybody has been answered and has heard it.
  bool Advance(int64_t now_ns);
  bool is_over() const { return over_; }
  // A local rank has asked, and has no answer yet.
  bool Asks(int32_t rank) const { return asked_.count(rank) > 0; }
  // Nobody waits for what was said to it: it may go.
  bool is_quiet() const;

  // What a daemon says that has no rank of the communicator.
  static PeerFrame Nobody() { return {.kind = PeerKind::kRegroupNobody}; }

 private:
  // A daemon as this one sees it.
  struct Other {
    std::unique_ptr<PeerLink> link;  // made here
    int64_t since_ns = 0;
    bool lost = false, refused = false, nobody = false;
    bool is_gone() const { return nobody || (lost && refused); }
  };
  struct Guest {
    std::unique_ptr<PeerLink> link;
    std::vector<int32_t> ranks;  // that asked by it
    bool lost = false;
  };
  struct Asked {
    RegroupAsk ask;
    Answer answer;
  };

  void Dial(size_t daemon, int64_t now_ns);
  void Hear(size_t daemon,
            const PeerFrame& frame);  // of the leader, or one that is asked whether it is there
  void HearGuest(Guest& guest, const PeerFrame& frame);
  // All that is known here, to the leader.
  void TellLeader(PeerLink& leader);
  PeerFrame AskFrame(int32_t rank, const RegroupAsk& ask) const;
  PeerFrame GoneFrame() const;
  bool Follow(size_t leader, int64_t now_ns);
  bool Lead(int64_t now_ns);
  void Enter(int32_t rank, const RegroupAsk& ask);
  void AnswerAll(const Result<std::map<int32_t, Regrouped>>& become);

  EventLoop& loop_;
  Party party_;
  std::function<Result<UniqueId>()> make_id_;
  Await await_;
  std::map<int32_t, Asked> asked_;  // local ranks
  std::vector<int32_t> gone_;       // local ranks
  int64_t until_ns_ = 0;
  std::vector<Other> others_;  // by daemon
  size_t leader_ = SIZE_MAX;   // that was told last
  std::list<Guest> guests_;
  std::vector<std::pair<int32_t, RegroupAsk>> heard_;  // of other daemons' ranks
  std::vector<int32_t> heard_gone_;
  bool over_ = false;
};

}  // namespace tutti::service

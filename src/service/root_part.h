// RootPart: what the root daemon of a communicator does beside its own ranks: gathers the ranks, makes the ring of
// daemons, and leads reconfigurations.
//
// Model       All daemons with ranks of it, the root's own too, have a link to here. When all ranks have
//             joined, Members; then epoch 0 is opened, and peers told. A reconfiguration is
//             Prepare, all Opened, Peers, all Prepared, Commit, all Switched; one that cannot be opened
//             somewhere is discarded everywhere. The ring of daemons is in the order of their
//             smallest ranks.
// Awaited     Of a communicator that comes of regrouping it is known who is to join: while it gathers, their daemons are asked
//             now and then whether they still live, so that who has ended before it joined is waited for by nobody.
// Threads     The daemon's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "endpoint.h"
#include "following.h"
#include "gate.h"
#include "peer_link.h"
#include "regrouping.h"
#include "strategy.h"
#include "tcp_frames.h"
#include "tutti/base/result.h"

namespace tutti::service {

class RootPart {
 public:
  // The greatest hold of any daemon, or why not.
  using Reconfigured = std::function<void(const Result<int64_t>& hold_ns)>;

  struct Progress {
    int64_t issued = 0, completed = 0, waits_ns = 0;
    int64_t collectives = 0;  // of what is completed: those of all ranks
    std::vector<int64_t>
        peers;  // that it waits for; none: it waits for a collective, or for nothing
    std::string what;
  };

  RootPart(EventLoop& loop, const std::array<uint64_t, 2>& secret) : loop_(loop), secret_(secret) {}
  RootPart(const RootPart&) = delete;
  RootPart& operator=(const RootPart&) = delete;

  // A link whose first frame, kJoin of this secret, has been read.
  void Accept(std::unique_ptr<PeerLink> link, const PeerFrame& join);
  void Reconfigure(const StrategyFiles& files, Reconfigured done);
  void Await(std::vector<Regrouping::Awaited> awaited) { awaited_ = std::move(awaited); }
  // To be called every 100 ms or so.
  void Tick(int64_t now_ns);
  // For all its daemons. False: not all ranks have joined, or it has failed.
  bool SetGates(const GateWindows& windows);
  // All its daemons follow whoever knows the key, from where these are; empty: as above.
  std::vector<Endpoint> Follow(const FollowKey& key, int64_t patience_ns, GateHolds holds);
  // All its daemons say to these when their ranks communicate.
  bool Announce(const std::vector<Follower>& followers);
  // All ranks have left, or it has failed and all daemons have gone.
  bool is_over() const { return over_; }
  // Why, where it has failed before all ranks had joined: others may come yet.
  const std::optional<Error>& failed_gathering() const { return failed_gathering_; }
  int32_t num_ranks() const { return num_ranks_; }
  const std::vector<Progress>& progress() const { return progress_; }
  // The host of a rank; empty: it has not joined.
  std::string HostOf(size_t rank) const;
  bool has_left(size_t rank) const { return left_[rank]; }
  // Why others wait for a rank, or would; empty: they do not.
  std::string WhyMissing(size_t rank) const;

 private:
  enum class Stage : uint8_t { kGathering, kOpening, kActive, kPreparing, kCommitted, kFailed };
  struct Peer {
    std::unique_ptr<PeerLink> link;
    Endpoint control;
    std::string host;
    bool answered = false;  // this stage's question
    bool gone = false;
  };

  // A daemon that is asked whether ranks of it live.
  struct Question {
    Endpoint control;
    std::unique_ptr<PeerLink> link;
    bool is_over = false, was_lost = false;
  };

  void Hear(size_t peer, const PeerFrame& frame);
  void AskForAwaited();
  void HearAbsent(const PeerFrame& frame);
  void Join(size_t peer, const PeerFrame& frame);
  void SendMembers();
  void Opened(size_t peer, const PeerFrame& frame);
  void Lost(size_t peer, const std::string& why);
  void Left(size_t peer, const PeerFrame& frame);
  void HearProgress(const PeerFrame& frame);
  void TellOthers(size_t peer, const PeerFrame& frame);
  void Fail(const PeerFrame& failed, size_t origin);
  void SendToAll(const PeerFrame& frame) { SendToAll(Framed(frame)); }
  void SendToAll(const FrameBytes& frame);
  bool runs() const {
    return stage_ == Stage::kActive || stage_ == Stage::kPreparing || stage_ == Stage::kCommitted;
  }
  void Ask(Stage stage);
  bool AllAnswered() const;
  void FinishReconfiguration(const Result<int64_t>& hold_ns);
  std::string RanksOf(size_t peer) const;

  EventLoop& loop_;
  std::array<uint64_t, 2> secret_;
  std::vector<Regrouping::Awaited> awaited_;
  std::list<Question> questions_;
  int64_t next_question_ns_ = 0;
  std::optional<Error> failed_gathering_;
  std::string why_failed_;
  std::string tenant_;
  int32_t num_ranks_ = 0;
  Stage stage_ = Stage::kGathering;
  uint32_t epoch_ = 0;
  int64_t attempt_ = 0;  // of a reconfiguration: answers to earlier ones may still be on their way
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<int32_t> peer_of_;  // by rank; -1: has not joined
  std::vector<Endpoint> endpoints_;
  std::vector<bool> left_;
  std::vector<Progress> progress_;
  int64_t hold_ns_ = 0;
  Reconfigured reconfigured_;
  bool over_ = false;
};

}  // namespace tutti::service

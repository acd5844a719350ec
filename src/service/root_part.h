// RootPart: what the root daemon of a communicator does beside its own ranks: gathers the ranks, makes the ring of
// daemons, and leads reconfigurations.
//
// Model       All daemons with ranks of it, the root's own too, have a link to here. When all ranks have
//             joined, Members; then epoch 0 is opened, and peers told. A reconfiguration is
//             Prepare, all Opened, Peers, all Prepared, Commit, all Switched; one that cannot be opened
//             somewhere is discarded everywhere. The ring of daemons is in the order of their
//             smallest ranks.
// Threads     The daemon's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "endpoint.h"
#include "gate.h"
#include "peer_link.h"
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
    std::string what;
  };

  RootPart() = default;
  RootPart(const RootPart&) = delete;
  RootPart& operator=(const RootPart&) = delete;

  // A link whose first frame, kJoin of this secret, has been read.
  void Accept(std::unique_ptr<PeerLink> link, const PeerFrame& join);
  void Reconfigure(const StrategyFiles& files, Reconfigured done);
  // Of all its daemons. False: not all ranks have joined, or it has failed.
  bool SetGates(const GateWindows& windows);
  // All ranks have left, or it has failed and all daemons have gone.
  bool is_over() const { return over_; }
  int32_t num_ranks() const { return num_ranks_; }
  const std::vector<Progress>& progress() const { return progress_; }
  // The host of a rank; empty: it has not joined.
  std::string HostOf(size_t rank) const;
  bool has_left(size_t rank) const { return left_[rank]; }

 private:
  enum class Stage : uint8_t { kGathering, kOpening, kActive, kPreparing, kCommitted, kFailed };
  struct Peer {
    std::unique_ptr<PeerLink> link;
    Endpoint control;
    std::string host;
    bool answered = false;  // this stage's question
    bool gone = false;
  };

  void Hear(size_t peer, const PeerFrame& frame);
  void Join(size_t peer, const PeerFrame& frame);
  void SendMembers();
  void Opened(size_t peer, const PeerFrame& frame);
  void Lost(size_t peer, const std::string& why);
  void Left(size_t peer, const PeerFrame& frame);
  void Fail(const PeerFrame& failed, size_t origin);
  void SendToAll(const PeerFrame& frame);
  void Ask(Stage stage);
  bool AllAnswered() const;
  void FinishReconfiguration(const Result<int64_t>& hold_ns);
  std::string RanksOf(size_t peer) const;

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

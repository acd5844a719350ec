#include "root_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tutti/runtime/remote.h"

namespace tutti::service {
namespace {

constexpr size_t kNoPeer = SIZE_MAX;
constexpr int32_t kMostRanks = 65536;

PeerFrame Failure(ErrorCode code, std::string why) {
  return {
      .kind = PeerKind::kFailed, .words = {static_cast<int64_t>(code)}, .texts = {std::move(why)}};
}

}  // namespace

void RootPart::Accept(std::unique_ptr<PeerLink> link, const PeerFrame& join) {
  const size_t peer = peers_.size();
  link->SetHandlers({.frame = [this, peer](const PeerFrame& frame) { Hear(peer, frame); },
                     .lost = [this, peer](const std::string& why) { Lost(peer, why); }});
  peers_.push_back(std::make_unique<Peer>());
  peers_.back()->link = std::move(link);
  Hear(peer, join);
}

void RootPart::Hear(size_t peer, const PeerFrame& frame) {
  if (stage_ == Stage::kFailed && frame.kind != PeerKind::kJoin) return;
  switch (frame.kind) {
    case PeerKind::kJoin:
      return Join(peer, frame);
    case PeerKind::kOpened:
      return Opened(peer, frame);
    case PeerKind::kPrepared:
      if (stage_ != Stage::kPreparing || frame.words.size() != 2 || frame.words[1] != attempt_)
        return;
      peers_[peer]->answered = true;
      if (!AllAnswered()) return;
      Ask(Stage::kCommitted);
      return SendToAll({.kind = PeerKind::kCommit, .words = {int64_t{epoch_} + 1}});
    case PeerKind::kSwitched:
      if (stage_ != Stage::kCommitted || frame.words.size() != 2) return;
      hold_ns_ = std::max(hold_ns_, frame.words[1]);
      peers_[peer]->answered = true;
      if (!AllAnswered()) return;
      ++epoch_;
      stage_ = Stage::kActive;
      return FinishReconfiguration(hold_ns_);
    case PeerKind::kLeft:
      return Left(peer, frame);
    case PeerKind::kProgress:
      if (frame.words.size() != 4 || frame.texts.size() != 1 || frame.words[0] < 0 ||
          frame.words[0] >= num_ranks_)
        return;
      progress_[static_cast<size_t>(frame.words[0])] = {frame.words[1], frame.words[2],
                                                        frame.words[3], frame.texts[0]};
      return;
    case PeerKind::kFailed:
      return Fail(frame, peer);
    default:
      return;  // none of those that go to a root
  }
}

void RootPart::Join(size_t peer, const PeerFrame& frame) {
  Peer& from = *peers_[peer];
  if (frame.words.size() != 6 || frame.texts.size() != 2) return Lost(peer, "it sent no join");
  const int64_t ranks = frame.words[2], rank = frame.words[3];
  const auto refuse = [&](const std::string& why) {
    from.link->Send({.kind = PeerKind::kRefused,
                     .words = {rank, static_cast<int64_t>(ErrorCode::kInvalidArgument)},
                     .texts = {why}});
  };
  if (stage_ != Stage::kGathering) return refuse("all its ranks have joined, or it has failed");
  if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks)
    return refuse(fmt::format("rank {} of {} cannot be", rank, ranks));
  if (num_ranks_ == 0) {
    num_ranks_ = static_cast<int32_t>(ranks);
    tenant_ = frame.texts[0];
    peer_of_.assign(static_cast<size_t>(ranks), -1);
    left_.assign(static_cast<size_t>(ranks), false);
    progress_.resize(static_cast<size_t>(ranks));
    endpoints_.resize(static_cast<size_t>(ranks));
  }
  if (tenant_ != frame.texts[0]) return refuse("this unique id is another tenant's");
  if (num_ranks_ != ranks)
    return refuse(fmt::format("rank {} counts {} ranks, others {}", rank, ranks, num_ranks_));
  int32_t& holder = peer_of_[static_cast<size_t>(rank)];
  if (holder >= 0) return refuse(fmt::format("rank {} has joined already", rank));
  from.control = EndpointAt(frame.words, 4);
  from.host = frame.texts[1];
  holder = static_cast<int32_t>(peer);
  if (std::find(peer_of_.begin(), peer_of_.end(), -1) == peer_of_.end()) SendMembers();
}

void RootPart::SendMembers() {
  // The ring in the order of the smallest ranks.
  std::vector<int32_t> ring;
  for (const int32_t peer : peer_of_)
    if (std::find(ring.begin(), ring.end(), peer) == ring.end()) ring.push_back(peer);
  for (size_t peer = 0; peer < peers_.size(); ++peer)  // its ranks were refused
    if (std::find(ring.begin(), ring.end(), static_cast<int32_t>(peer)) == ring.end())
      peers_[peer]->gone = true;
  const JobSecret cookie = DrawSecret();
  PeerFrame members{.kind = PeerKind::kMembers};
  members.words = {0, static_cast<int64_t>(cookie[0]), static_cast<int64_t>(cookie[1])};
  for (const int32_t peer : peer_of_)
    members.words.push_back(std::find(ring.begin(), ring.end(), peer) - ring.begin());
  for (const int32_t peer : ring) {
    const Peer& of_ring = *peers_[static_cast<size_t>(peer)];
    members.words.push_back(of_ring.control.address);
    members.words.push_back(of_ring.control.port);
    members.texts.push_back(of_ring.host);
  }
  Ask(Stage::kOpening);
  for (size_t index = 0; index < ring.size(); ++index) {
    members.words[0] = static_cast<int64_t>(index);
    peers_[static_cast<size_t>(ring[index])]->link->Send(members);
  }
}

void RootPart::Opened(size_t peer, const PeerFrame& frame) {
  const bool opening = stage_ == Stage::kOpening || stage_ == Stage::kPreparing;
  if (!opening || frame.words.size() < 3 || frame.words.size() % 3 != 0) return;
  const int64_t epoch = stage_ == Stage::kOpening ? 0 : int64_t{epoch_} + 1;
  if (frame.words[0] != epoch || frame.words[1] != attempt_) return;
  if (frame.words[2] == 0) {
    const std::string why = frame.texts.empty() ? "it cannot be opened" : frame.texts[0];
    if (stage_ == Stage::kOpening) return Fail(Failure(ErrorCode::kPeerFailed, why), kNoPeer);
    stage_ = Stage::kActive;
    SendToAll({.kind = PeerKind::kDiscard, .words = {epoch}});
    return FinishReconfiguration(InvalidArgument(why));
  }
  for (size_t at = 3; at < frame.words.size(); at += 3)
    if (frame.words[at] >= 0 && frame.words[at] < num_ranks_)
      endpoints_[static_cast<size_t>(frame.words[at])] = EndpointAt(frame.words, at + 1);
  peers_[peer]->answered = true;
  if (!AllAnswered()) return;
  PeerFrame told{.kind = PeerKind::kPeers, .words = {epoch, attempt_}};
  for (const Endpoint& endpoint : endpoints_) {
    told.words.push_back(endpoint.address);
    told.words.push_back(endpoint.port);
  }
  Ask(stage_ == Stage::kOpening ? Stage::kActive : Stage::kPreparing);
  SendToAll(told);
}

bool RootPart::SetGates(const GateWindows& windows) {
  const bool runs =
      stage_ == Stage::kActive || stage_ == Stage::kPreparing || stage_ == Stage::kCommitted;
  if (runs)
    SendToAll({.kind = PeerKind::kGates,
               .words = {windows.period_ns, windows.phase_ns, windows.length_ns}});
  return runs;
}

void RootPart::Reconfigure(const StrategyFiles& files, Reconfigured done) {
  if (stage_ != Stage::kActive)
    return done(InvalidArgument(stage_ == Stage::kFailed ? "it has failed"
                                : stage_ == Stage::kGathering || stage_ == Stage::kOpening
                                    ? "not all its ranks have joined"
                                    : "busy: a reconfiguration is under way"));
  if (std::find(left_.begin(), left_.end(), true) != left_.end())
    return done(InvalidArgument("some of its ranks have left"));
  reconfigured_ = std::move(done);
  hold_ns_ = 0;
  PeerFrame prepare{.kind = PeerKind::kPrepare, .words = {int64_t{epoch_} + 1, ++attempt_}};
  prepare.texts.push_back(files.flows);
  for (const auto& [name, bytes] : files.schedules) {
    prepare.texts.push_back(name);
    prepare.texts.push_back(bytes);
  }
  Ask(Stage::kPreparing);
  SendToAll(prepare);
}

void RootPart::FinishReconfiguration(const Result<int64_t>& hold_ns) {
  if (const Reconfigured done = std::exchange(reconfigured_, nullptr)) done(hold_ns);
}

void RootPart::Left(size_t peer, const PeerFrame& frame) {
  if (frame.words.size() != 2 || frame.words[0] < 0 || frame.words[0] >= num_ranks_) return;
  left_[static_cast<size_t>(frame.words[0])] = true;
  for (size_t other = 0; other < peers_.size(); ++other)
    if (other != peer && !peers_[other]->gone) peers_[other]->link->Send(frame);
  if (std::find(left_.begin(), left_.end(), false) == left_.end()) over_ = true;
}

std::string RootPart::RanksOf(size_t peer) const {
  std::string ranks;
  for (size_t rank = 0; rank < peer_of_.size(); ++rank)
    if (peer_of_[rank] == static_cast<int32_t>(peer))
      ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  return ranks.empty() ? "no rank" : "rank " + ranks;
}

void RootPart::Lost(size_t peer, const std::string& why) {
  Peer& lost = *peers_[peer];
  if (lost.gone) return;
  lost.gone = true;
  bool needed = false;
  for (size_t rank = 0; rank < peer_of_.size(); ++rank)
    if (peer_of_[rank] == static_cast<int32_t>(peer) && !left_[rank]) needed = true;
  if (needed && stage_ != Stage::kFailed)
    Fail(Failure(ErrorCode::kPeerFailed,
                 fmt::format("the daemon of {} ({}) has gone: {}", RanksOf(peer), lost.host, why)),
         peer);
  if (std::all_of(peers_.begin(), peers_.end(), [](const auto& each) { return each->gone; }))
    over_ = true;
}

void RootPart::Fail(const PeerFrame& failed, size_t origin) {
  stage_ = Stage::kFailed;
  for (size_t peer = 0; peer < peers_.size(); ++peer)
    if (peer != origin && !peers_[peer]->gone) peers_[peer]->link->Send(failed);
  FinishReconfiguration(
      MakeError(ErrorCode::kPeerFailed, failed.texts.empty() ? "it has failed" : failed.texts[0]));
}

void RootPart::SendToAll(const PeerFrame& frame) {
  for (const auto& peer : peers_)
    if (!peer->gone) peer->link->Send(frame);
}

void RootPart::Ask(Stage stage) {
  stage_ = stage;
  for (const auto& peer : peers_) peer->answered = false;
}

bool RootPart::AllAnswered() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& peer) { return peer->answered || peer->gone; });
}

std::string RootPart::HostOf(size_t rank) const {
  return peer_of_[rank] < 0 ? "" : peers_[static_cast<size_t>(peer_of_[rank])]->host;
}

}  // namespace tutti::service

#include "root_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
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
      SendToAll({.kind = PeerKind::kClosed, .words = {int64_t{epoch_}}});
      return FinishReconfiguration(hold_ns_);
    case PeerKind::kRankFailed:
      return TellOthers(peer, frame);
    case PeerKind::kLeft:
      return Left(peer, frame);
    case PeerKind::kProgress:
      return HearProgress(frame);
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
  const auto refuse = [&](const std::string& why, ErrorCode code = ErrorCode::kInvalidArgument) {
    from.link->Send(
        {.kind = PeerKind::kRefused, .words = {rank, static_cast<int64_t>(code)}, .texts = {why}});
  };
  if (stage_ == Stage::kFailed) return refuse(why_failed_, ErrorCode::kPeerFailed);
  if (stage_ != Stage::kGathering) return refuse("all its ranks have joined");
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
    members.words.push_back(of_ring.control.address.v4());
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
    told.words.push_back(endpoint.address.v4());
    told.words.push_back(endpoint.port);
  }
  Ask(stage_ == Stage::kOpening ? Stage::kActive : Stage::kPreparing);
  SendToAll(told);
}

bool RootPart::SetGates(const GateWindows& windows) {
  if (runs())
    SendToAll({.kind = PeerKind::kGates,
               .words = {windows.period_ns, windows.phase_ns, windows.length_ns,
                         static_cast<int64_t>(windows.holds)}});
  return runs();
}

std::vector<Endpoint> RootPart::Follow(const FollowKey& key, int64_t patience_ns, GateHolds holds) {
  if (!runs()) return {};
  SendToAll({.kind = PeerKind::kFollow,
             .words = {static_cast<int64_t>(key[0]), static_cast<int64_t>(key[1]), patience_ns,
                       static_cast<int64_t>(holds)}});
  std::vector<Endpoint> daemons;
  for (const auto& peer : peers_) daemons.push_back(peer->control);
  return daemons;
}

bool RootPart::Announce(const std::vector<Follower>& followers) {
  if (!runs()) return false;
  PeerFrame told{.kind = PeerKind::kAnnounce};
  for (const Follower& follower : followers)
    told.words.insert(told.words.end(),
                      {static_cast<int64_t>(follower.key[0]), static_cast<int64_t>(follower.key[1]),
                       follower.daemon.address.v4(), follower.daemon.port});
  SendToAll(told);
  return true;
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
  PeerFrame told{.kind = PeerKind::kPrepare, .words = {int64_t{epoch_} + 1, ++attempt_}};
  FrameBytes prepare;
  try {
    told.texts.push_back(files.flows);
    for (const auto& [name, bytes] : files.schedules) {
      told.texts.push_back(name);
      told.texts.push_back(bytes);
    }
    prepare = Framed(told);
  } catch (const std::bad_alloc&) {
    return FinishReconfiguration(
        MakeError(ErrorCode::kResourceExhausted, "the daemon has no memory left for a strategy"));
  }
  Ask(Stage::kPreparing);
  SendToAll(prepare);
}

void RootPart::FinishReconfiguration(const Result<int64_t>& hold_ns) {
  if (const Reconfigured done = std::exchange(reconfigured_, nullptr)) done(hold_ns);
}

void RootPart::Left(size_t peer, const PeerFrame& frame) {
  if (frame.words.size() < 2 || frame.words[0] < 0 || frame.words[0] >= num_ranks_) return;
  left_[static_cast<size_t>(frame.words[0])] = true;
  TellOthers(peer, frame);
  if (std::find(left_.begin(), left_.end(), false) != left_.end()) return;
  over_ = true;
  FinishReconfiguration(MakeError(ErrorCode::kPeerFailed, "all its ranks have left"));
}

void RootPart::TellOthers(size_t peer, const PeerFrame& frame) {
  const FrameBytes bytes = Framed(frame);
  for (size_t other = 0; other < peers_.size(); ++other)
    if (other != peer && !peers_[other]->gone) peers_[other]->link->Send(bytes);
}

void RootPart::HearProgress(const PeerFrame& frame) {
  constexpr size_t kPeers = 5;  // where they begin
  if (frame.words.size() < kPeers || frame.texts.size() != 1 || frame.words[0] < 0 ||
      frame.words[0] >= num_ranks_)
    return;
  progress_[static_cast<size_t>(frame.words[0])] = {
      .issued = frame.words[1],
      .completed = frame.words[2],
      .waits_ns = frame.words[3],
      .collectives = frame.words[4],
      .peers = {frame.words.begin() + kPeers, frame.words.end()},
      .what = frame.texts[0]};
}

std::string RootPart::WhyMissing(size_t rank) const {
  if (HostOf(rank).empty()) return "has not joined";
  if (left_[rank]) return "has left";
  const Progress& self = progress_[rank];
  if (!runs() || self.waits_ns > 0) return "";
  int64_t most = self.collectives;
  for (size_t other = 0; other < progress_.size(); ++other) {
    const Progress& waiting = progress_[other];
    if (waiting.waits_ns == 0) continue;
    if (std::find(waiting.peers.begin(), waiting.peers.end(), static_cast<int64_t>(rank)) !=
        waiting.peers.end())
      return fmt::format("has not called the messages that rank {} waits for", other);
    if (waiting.peers.empty()) most = std::max(most, waiting.collectives + 1);
  }
  return most == self.collectives
             ? ""
             : fmt::format("has called {} collectives, others {}", self.collectives, most);
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
  for (size_t rank = 0; rank < peer_of_.size(); ++rank) {
    if (peer_of_[rank] != static_cast<int32_t>(peer)) continue;
    if (!left_[rank]) needed = true;
    // What a rank had sent when it left may be lost with its daemon.
    if (left_[rank] && runs())
      SendToAll({.kind = PeerKind::kLeft,
                 .words = {static_cast<int64_t>(rank), 0},
                 .texts = {fmt::format("its daemon ({}) has gone: {}", lost.host, why)}});
  }
  if (needed && stage_ != Stage::kFailed)
    Fail(Failure(ErrorCode::kPeerFailed,
                 fmt::format("the daemon of {} ({}) has gone: {}", RanksOf(peer), lost.host, why)),
         peer);
  if (std::all_of(peers_.begin(), peers_.end(), [](const auto& each) { return each->gone; }))
    over_ = true;
}

// --- Who is to join after regrouping ------------------------------------------------------------

void RootPart::Tick(int64_t now_ns) {
  constexpr int64_t kBetweenNs = 250'000'000;
  for (const auto& peer : peers_)
    if (!peer->gone) peer->link->Watch(now_ns);
  if (stage_ == Stage::kFailed)
    over_ = over_ ||
            std::all_of(peers_.begin(), peers_.end(), [](const auto& each) { return each->gone; });
  if (stage_ != Stage::kGathering || awaited_.empty()) return questions_.clear();
  // Nobody listens there any more: the daemon has ended, and its ranks with it.
  for (const Question& question : questions_)
    if (question.was_lost && question.link->was_refused())
      for (const Regrouping::Awaited& awaited : awaited_)
        if (awaited.control == question.control &&
            (num_ranks_ == 0 || peer_of_[static_cast<size_t>(awaited.rank)] < 0))
          return Fail(
              Failure(ErrorCode::kPeerFailed, fmt::format("the daemon of rank {} ({}) has gone",
                                                          awaited.rank, awaited.control.ToText())),
              kNoPeer);
  questions_.remove_if(
      [](const Question& question) { return question.is_over || question.was_lost; });
  if (now_ns < next_question_ns_) return;
  next_question_ns_ = now_ns + kBetweenNs;
  AskForAwaited();
}

void RootPart::AskForAwaited() {
  std::map<std::pair<uint32_t, uint16_t>, PeerFrame> frames;  // by daemon
  for (const Regrouping::Awaited& awaited : awaited_) {
    if (num_ranks_ > 0 &&
        (awaited.rank >= num_ranks_ || peer_of_[static_cast<size_t>(awaited.rank)] >= 0))
      continue;
    PeerFrame& frame = frames[{awaited.control.address.v4(), awaited.control.port}];
    frame.kind = PeerKind::kAwaited;
    if (frame.words.empty())
      frame.words = {static_cast<int64_t>(secret_[0]), static_cast<int64_t>(secret_[1])};
    frame.words.push_back(awaited.rank);
  }
  for (const auto& [daemon, frame] : frames) {
    const Endpoint control{daemon.first, daemon.second};
    const bool is_asked =
        std::any_of(questions_.begin(), questions_.end(),
                    [&control](const Question& question) { return question.control == control; });
    if (is_asked) continue;
    Question& question = questions_.emplace_back();
    question.control = control;
    question.link =
        PeerLink::Connect(loop_, control,
                          {.frame =
                               [this, &question](const PeerFrame& answer) {
                                 question.is_over = true;
                                 HearAbsent(answer);
                               },
                           .lost = [&question](const std::string&) { question.was_lost = true; }});
    if (question.link == nullptr) {
      questions_.pop_back();
      return;  // without descriptors: later
    }
    question.link->Send(frame);
  }
}

void RootPart::HearAbsent(const PeerFrame& frame) {
  if (frame.kind != PeerKind::kAbsent || stage_ != Stage::kGathering) return;
  for (const int64_t rank : frame.words) {
    const bool is_awaited =
        std::any_of(awaited_.begin(), awaited_.end(),
                    [rank](const Regrouping::Awaited& awaited) { return awaited.rank == rank; });
    const bool has_joined = num_ranks_ > 0 && rank >= 0 && rank < num_ranks_ &&
                            peer_of_[static_cast<size_t>(rank)] >= 0;
    if (is_awaited && !has_joined)
      return Fail(
          Failure(ErrorCode::kPeerFailed, fmt::format("rank {} has ended before it joined", rank)),
          kNoPeer);
  }
}

void RootPart::Fail(const PeerFrame& failed, size_t origin) {
  why_failed_ = failed.texts.empty() ? "it has failed" : failed.texts[0];
  if (stage_ == Stage::kGathering) failed_gathering_ = {ErrorCode::kPeerFailed, why_failed_};
  stage_ = Stage::kFailed;
  TellOthers(origin, failed);
  FinishReconfiguration(MakeError(ErrorCode::kPeerFailed, why_failed_));
}

void RootPart::SendToAll(const FrameBytes& frame) {
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

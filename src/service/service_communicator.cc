#include "service_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "bootstrap.h"
#include "tutti/base/clock.h"
#include "tutti/base/hash.h"

namespace tutti::service {

std::string CommunicatorId::Label() const {
  Fnv1a label;
  for (const uint64_t word : secret) label.AddWord(static_cast<int64_t>(word));
  return fmt::format("c-{:08x}", label.value() & 0xffffffffu);
}

ServiceCommunicator::ServiceCommunicator(const DaemonParts& parts, Tenant& tenant,
                                         const CommunicatorId& id, int32_t num_ranks)
    : parts_(parts), tenant_(tenant), id_(id), num_ranks_(num_ranks), announcer_(parts.loop) {}

ServiceCommunicator::~ServiceCommunicator() {
  chunks_.End();
  *alive_ = false;
  for (const auto& rank : local_) {
    rank->planned.reset();
    rank->exchange.reset();
    if (rank->owner != nullptr) --tenant_.ranks;
  }
}

std::vector<int32_t> ServiceCommunicator::LocalRank::PeersWaitedFor() const {
  const Command* waits = next();
  if (waits == nullptr || waits->is_of_all) return {};
  if (running) return exchange->PeersWaitedFor();
  std::set<int32_t> peers;
  for (const Message& message : waits->messages) peers.insert(message.peer);
  peers.erase(rank);
  return {peers.begin(), peers.end()};
}

// --- Joining -------------------------------------------------------------------------------------

Status ServiceCommunicator::Join(int32_t rank, int32_t num_ranks, RankOwner& owner, uint32_t line) {
  if (failed_) return tl::unexpected(*failed_);
  if (stage_ != Stage::kJoining) return InvalidArgument("all its ranks have joined");
  if (num_ranks != num_ranks_)
    return InvalidArgument(
        fmt::format("rank {} counts {} ranks, others {}", rank, num_ranks, num_ranks_));
  if (local_.size() >= static_cast<size_t>(kMaxLocalRanks))
    return MakeError(
        ErrorCode::kResourceExhausted,
        fmt::format("a host holds at most {} ranks of a communicator", kMaxLocalRanks));
  for (const auto& other : local_)
    if (other->rank == rank)
      return InvalidArgument(fmt::format("rank {} has joined already", rank));
  if (root_ == nullptr) {
    root_ = PeerLink::Connect(
        parts_.loop, id_.root,
        {.frame = [this](const PeerFrame& frame) { HearRoot(frame); },
         .lost =
             [this](const std::string& why) {
               if (!is_over())
                 Fail({ErrorCode::kPeerFailed, "the root daemon has gone: " + why}, false);
             }});
    if (root_ == nullptr)
      return MakeError(ErrorCode::kResourceExhausted, "the daemon has no descriptor left");
  }
  auto joined = std::make_unique<LocalRank>();
  joined->rank = rank;
  joined->owner = &owner;
  joined->line = line;
  local_.push_back(std::move(joined));
  ++tenant_.ranks;
  root_->Send({.kind = PeerKind::kJoin,
               .words = {static_cast<int64_t>(id_.secret[0]), static_cast<int64_t>(id_.secret[1]),
                         num_ranks, rank, parts_.control.address.v4(), parts_.control.port},
               .texts = {tenant_.options.name, parts_.host}});
  return {};
}

void ServiceCommunicator::HearRoot(const PeerFrame& frame) {
  if (failed_) return;  // its ranks have been told, or have left
  const std::vector<int64_t>& words = frame.words;
  const std::string text = frame.texts.empty() ? "" : frame.texts[0];
  switch (frame.kind) {
    case PeerKind::kRefused: {
      if (words.size() != 2) return;
      const auto found = std::find_if(local_.begin(), local_.end(),
                                      [&](const auto& rank) { return rank->rank == words[0]; });
      if (found == local_.end() || stage_ != Stage::kJoining) return;
      const std::unique_ptr<LocalRank> refused = std::move(*found);
      local_.erase(found);
      --tenant_.ranks;
      return refused->owner->JoinRefused(refused->line, {static_cast<ErrorCode>(words[1]), text});
    }
    case PeerKind::kMembers:
      return BecomeMember(frame);
    case PeerKind::kPeers:
      return MeetPeers(frame);
    case PeerKind::kPrepare:
      return Prepare(frame);
    case PeerKind::kDiscard:
    case PeerKind::kCommit:
      if (words.size() == 1)
        Apply({.kind = frame.kind == PeerKind::kCommit ? BarrierEvent::Kind::kCommit
                                                       : BarrierEvent::Kind::kDiscard,
               .epoch = static_cast<uint32_t>(words[0])});
      return;
    case PeerKind::kClosed:
      if (words.size() == 1)
        std::erase_if(epochs_, [&](const auto& entry) {
          return entry.first < words[0] && entry.first < barrier_.epoch;
        });
      return;
    case PeerKind::kLeft:
    case PeerKind::kRankFailed: {
      if (words.empty()) return;
      const auto completed = RankProgress::FromWords(std::span(words).subspan(1));
      if (!completed) return;
      const auto rank = static_cast<int32_t>(words[0]);
      return frame.kind == PeerKind::kLeft ? HearLeft(rank, *completed, text)
                                           : HearEnded(rank, *completed, text);
    }
    case PeerKind::kFailed:
      if (words.size() == 1) Fail({static_cast<ErrorCode>(words[0]), text}, false);
      return;
    case PeerKind::kGates:
      if (words.size() != 4) return;
      if (const GateWindows windows{words[0], words[1], words[2], GateHoldsOf(words[3])};
          windows.AreValid()) {
        followed_.End();
        gate_.Set(windows);
      }
      return;
    case PeerKind::kFollow:
      if (words.size() != 4 || words[2] <= 0) return;
      followed_.Begin({static_cast<uint64_t>(words[0]), static_cast<uint64_t>(words[1])});
      gate_.Follow(words[2], GateHoldsOf(words[3]));
      return;
    case PeerKind::kAnnounce:
      return HearFollowers(frame);
    default:
      return;  // none of those that come from a root
  }
}

void ServiceCommunicator::HearFollowers(const PeerFrame& frame) {
  constexpr size_t kWords = 4;
  if (frame.words.size() % kWords != 0) return;
  std::vector<Follower> followers;
  for (size_t at = 0; at < frame.words.size(); at += kWords)
    followers.push_back({.key = {static_cast<uint64_t>(frame.words[at]),
                                 static_cast<uint64_t>(frame.words[at + 1])},
                         .daemon = EndpointAt(frame.words, at + 2)});
  announcer_.SetFollowers(followers);
  Announce();
}

void ServiceCommunicator::Announce() {
  announcer_.Say(std::any_of(local_.begin(), local_.end(),
                             [](const auto& rank) { return rank->running.has_value(); }));
}

void ServiceCommunicator::BecomeMember(const PeerFrame& frame) {
  const auto ranks = static_cast<size_t>(num_ranks_);
  const size_t daemons = frame.texts.size();
  if (stage_ != Stage::kJoining || daemons == 0 || frame.words.size() != 3 + ranks + 2 * daemons ||
      frame.words[0] < 0 || frame.words[0] >= static_cast<int64_t>(daemons))
    return;
  stage_ = Stage::kOpening;
  cookie_ = {static_cast<uint64_t>(frame.words[1]), static_cast<uint64_t>(frame.words[2])};
  std::sort(local_.begin(), local_.end(),
            [](const auto& a, const auto& b) { return a->rank < b->rank; });
  GiveDevices();
  barrier_.daemons = static_cast<int32_t>(daemons);
  barrier_.self = static_cast<int32_t>(frame.words[0]);
  barrier_.local_ranks = static_cast<int32_t>(local_.size());
  members_.resize(daemons);
  for (size_t rank = 0; rank < ranks; ++rank) {
    const int64_t daemon = frame.words[3 + rank];
    if (daemon < 0 || daemon >= static_cast<int64_t>(daemons)) return;
    members_[static_cast<size_t>(daemon)].ranks.push_back(static_cast<int32_t>(rank));
  }
  for (size_t daemon = 0; daemon < daemons; ++daemon)
    members_[daemon].control = EndpointAt(frame.words, 3 + ranks + 2 * daemon);
  if (daemons > 1) {
    const size_t next = (static_cast<size_t>(frame.words[0]) + 1) % daemons;
    // Who has gone the root says: a connection that is lost is made again.
    ring_out_ = PeerLink::Connect(parts_.loop, EndpointAt(frame.words, 3 + ranks + 2 * next),
                                  {.frame = [](const PeerFrame&) {}, .lost = [](const auto&) {}});
    if (ring_out_ == nullptr)
      return Fail({ErrorCode::kResourceExhausted, "a daemon has no descriptor left"}, true);
    ring_out_->Endure();
    ring_out_->Send({.kind = PeerKind::kRing,
                     .words = {static_cast<int64_t>(id_.secret[0]),
                               static_cast<int64_t>(id_.secret[1]), barrier_.self}});
  }
  Result<std::shared_ptr<Strategy>> strategy = Strategy::Make({}, num_ranks_);
  if (!strategy) return Fail(strategy.error(), true);
  Open(0, std::move(*strategy));
}

EpochOptions ServiceCommunicator::OptionsOf(uint32_t epoch) {
  EpochOptions options{
      .number = epoch,
      .communicator = id_.secret[0],
      .cookie = cookie_,
      .num_ranks = num_ranks_,
      .leaves_from_addresses = !parts_.nics.empty(),
      .on_lost = [this](int32_t from, const LostWay& way) { path_watch_.Add(from, way, NowNs()); },
      .is_suspect = [this](const TcpPorts& ports) { return path_watch_.Suspects(ports, NowNs()); },
      .helpers = parts_.helpers,
      .path_bytes = parts_.path_bytes};
  for (const auto& rank : local_) {
    options.local_ranks.push_back(rank->rank);
    options.addresses.push_back(
        parts_.nics.empty() ? parts_.control.address.v4()
                            : parts_.nics[static_cast<size_t>(rank->device) % parts_.nics.size()]);
  }
  return options;
}

void ServiceCommunicator::GiveDevices() {
  const std::vector<int32_t>& devices = tenant_.options.devices;
  for (size_t i = 0; i < local_.size(); ++i)
    local_[i]->device = devices.empty() ? static_cast<int32_t>(i) : devices[i % devices.size()];
}

void ServiceCommunicator::Open(uint32_t epoch, std::shared_ptr<Strategy> strategy) {
  Result<std::unique_ptr<Epoch>> opened =
      Epoch::Open(parts_.loop, std::move(strategy), OptionsOf(epoch));
  if (!opened) return TellOpened(epoch, opened.error().message);
  epochs_[epoch] = std::move(*opened);
  TellOpened(epoch, "");
}

void ServiceCommunicator::TellOpened(uint32_t epoch, const std::string& why_not) {
  PeerFrame opened{.kind = PeerKind::kOpened,
                   .words = {int64_t{epoch}, attempt_, why_not.empty() ? 1 : 0}};
  if (!why_not.empty()) {
    opened.texts.push_back(fmt::format("{}: {}", parts_.host, why_not));
    if (epoch > 0) Apply({.kind = BarrierEvent::Kind::kOpenFailed, .epoch = epoch});
    return root_->Send(opened);
  }
  for (size_t i = 0; i < local_.size(); ++i) {
    const Endpoint endpoint = epochs_[epoch]->endpoint(i);
    opened.words.insert(opened.words.end(),
                        {local_[i]->rank, endpoint.address.v4(), endpoint.port});
  }
  root_->Send(opened);
}

void ServiceCommunicator::MeetPeers(const PeerFrame& frame) {
  if (frame.words.size() != 2 + 2 * static_cast<size_t>(num_ranks_) || frame.words[1] != attempt_)
    return;
  const auto number = static_cast<uint32_t>(frame.words[0]);
  const auto epoch = epochs_.find(number);
  if (epoch == epochs_.end()) return;
  std::vector<Endpoint> peers;
  for (size_t at = 2; at < frame.words.size(); at += 2)
    peers.push_back(EndpointAt(frame.words, at));
  epoch->second->SetPeers(std::move(peers));
  if (number > 0) return Apply({.kind = BarrierEvent::Kind::kOpened, .epoch = number});
  if (stage_ != Stage::kOpening) return;
  stage_ = Stage::kActive;
  for (const auto& rank : local_)
    if (rank->owner != nullptr) rank->owner->Joined(rank->line);
}

void ServiceCommunicator::AcceptRing(std::unique_ptr<PeerLink> link) {
  link->SetHandlers({.frame = [this](const PeerFrame& frame) { HearRing(frame); },
                     .lost = [](const std::string&) {}});
  link->Endure();
  ring_in_ = std::move(link);
}

void ServiceCommunicator::HearRing(const PeerFrame& frame) {
  if (frame.kind != PeerKind::kBarrier || frame.words.size() != 3) return;
  Apply({.kind = BarrierEvent::Kind::kMessage,
         .origin = static_cast<int32_t>(frame.words[1]),
         .epoch = static_cast<uint32_t>(frame.words[0]),
         .value = static_cast<uint64_t>(frame.words[2])});
}

// --- Changing the strategy -----------------------------------------------------------------------

void ServiceCommunicator::Prepare(const PeerFrame& frame) {
  if (frame.words.size() != 2 || frame.texts.size() % 2 != 1) return;
  attempt_ = frame.words[1];
  const auto epoch = static_cast<uint32_t>(frame.words[0]);
  const BarrierStep step =
      parts_.barrier(barrier_, {.kind = BarrierEvent::Kind::kPrepare, .epoch = epoch});
  if (!step.refused.empty()) return TellOpened(epoch, std::string(step.refused));
  Perform(step);
  StrategyFiles files;
  try {
    files.flows = frame.texts[0];
    for (size_t i = 1; i < frame.texts.size(); i += 2)
      files.schedules.emplace_back(frame.texts[i], frame.texts[i + 1]);
  } catch (const std::bad_alloc&) {
    return TellOpened(epoch, "the daemon has no memory left for a strategy");
  }
  // Judged, and plans made for what was called so far, while collectives run.
  parts_.planner.Add([this, alive = alive_, epoch, attempt = attempt_, files = std::move(files),
                      ranks = num_ranks_,
                      one_host = local_.size() == static_cast<size_t>(num_ranks_),
                      seen = seen_]() -> Worker::Finish {
    Result<std::shared_ptr<Strategy>> strategy = Strategy::Make(files, ranks);
    std::string why = strategy ? "" : strategy.error().message;
    for (const CollectiveCall& call : seen)
      if (strategy && why.empty())
        if (const Status planned = (*strategy)->Prepare(call, one_host); !planned)
          why = planned.error().message;
    return [this, alive, epoch, attempt, why, made = strategy ? *strategy : nullptr] {
      if (!*alive || failed_ || barrier_.phase != BarrierPhase::kOpening || attempt != attempt_)
        return;
      if (!why.empty()) return TellOpened(epoch, why);
      Open(epoch, made);
    };
  });
}

void ServiceCommunicator::Apply(const BarrierEvent& event) {
  if (!failed_) Perform(parts_.barrier(barrier_, event));
}

void ServiceCommunicator::Perform(const BarrierStep& step) {
  if (!step.refused.empty()) return;
  const BarrierPhase before = barrier_.phase;
  barrier_ = step.state;
  if (before != BarrierPhase::kHolding && barrier_.phase == BarrierPhase::kHolding)
    holds_since_ns_ = NowNs();
  if (before == BarrierPhase::kHolding && barrier_.phase != BarrierPhase::kHolding)
    hold_ns_ = NowNs() - holds_since_ns_;
  if (before == BarrierPhase::kPrepared && barrier_.phase != BarrierPhase::kHolding) hold_ns_ = 0;
  for (const BarrierAction& action : step.actions()) Do(action);
  CheckDrained();
}

void ServiceCommunicator::Do(const BarrierAction& action) {
  using Kind = BarrierAction::Kind;
  switch (action.kind) {
    case Kind::kClose:
      // One that is drained here is open to others that may not have heard yet that all of theirs was taken.
      if (action.epoch >= barrier_.epoch) epochs_.erase(action.epoch);
      return;
    case Kind::kTellPrepared:
      return root_->Send({.kind = PeerKind::kPrepared, .words = {int64_t{action.epoch}, attempt_}});
    case Kind::kTellSwitched:
      return root_->Send({.kind = PeerKind::kSwitched, .words = {int64_t{action.epoch}, hold_ns_}});
    case Kind::kSend:
      ring_is_needed_ = true;
      return ring_out_->Send(
          {.kind = PeerKind::kBarrier,
           .words = {int64_t{action.epoch}, action.origin, static_cast<int64_t>(action.value)}});
    case Kind::kFailPending:
      return Fail({ErrorCode::kPeerFailed,
                   fmt::format("daemon {} of the ring broke the protocol", action.origin)},
                  true);
    case Kind::kOpen:       // Prepare() does it
    case Kind::kLaunch:     // TryLaunch() does it
    case Kind::kSendAbort:  // the root tells all
    case Kind::kTellState:
      return;
  }
}

void ServiceCommunicator::CheckDrained() {
  if (!barrier_.draining || failed_) return;
  for (const auto& rank : local_)
    if (rank->epoch != nullptr && rank->epoch->number() < barrier_.epoch) return;
  for (const auto& [number, epoch] : epochs_)
    if (number < barrier_.epoch && !epoch->is_quiet()) return;  // Tick() looks again
  Perform(parts_.barrier(barrier_, {.kind = BarrierEvent::Kind::kDrained}));
}

// --- Leaving and failing -------------------------------------------------------------------------

ServiceCommunicator::LocalRank* ServiceCommunicator::Find(uint32_t line, const RankOwner& owner) {
  for (const auto& rank : local_)
    if (rank->owner == &owner && rank->line == line) return rank.get();
  return nullptr;
}

void ServiceCommunicator::Leave(std::span<const uint32_t> lines, const RankOwner& owner,
                                const std::string& why) {
  std::vector<LocalRank*> leaving;
  for (const auto& rank : local_)
    if (rank->owner == &owner && std::find(lines.begin(), lines.end(), rank->line) != lines.end())
      leaving.push_back(rank.get());
  std::sort(leaving.begin(), leaving.end(),
            [](const LocalRank* a, const LocalRank* b) { return a->rank < b->rank; });
  const bool unfinished =
      std::any_of(leaving.begin(), leaving.end(), [this](const LocalRank* rank) {
        return stage_ != Stage::kActive ||
               (!rank->has_failed && (rank->running || !rank->queue.empty()));
      });
  if (unfinished && !failed_) {
    std::string names;
    for (const LocalRank* rank : leaving)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", rank->rank);
    Fail({ErrorCode::kPeerFailed, fmt::format("rank {}: {}", names, why)}, true);
  }
  for (LocalRank* rank : leaving) {
    if (rank->owner == nullptr) continue;  // it left when it heard that
    rank->owner = nullptr;
    --tenant_.ranks;
    if (regrouping_ != nullptr) regrouping_->SetGone(rank->rank);
    if (failed_) continue;
    const std::string& cause = rank->why_failed.empty() ? why : rank->why_failed;
    TellEnd(PeerKind::kLeft, *rank, cause);
    HearLeft(rank->rank, rank->progress, cause);
  }
}

void ServiceCommunicator::TellEnd(PeerKind kind, const LocalRank& rank, const std::string& why) {
  PeerFrame end{.kind = kind, .words = {rank.rank}, .texts = {why}};
  rank.progress.AppendTo(end.words);
  root_->Send(end);
}

void ServiceCommunicator::HearEnded(int32_t rank, const RankProgress& completed,
                                    const std::string& why) {
  // The root's word of one that ended here comes, too.
  if (!ended_.Add(rank, completed, why)) return;
  for (const auto& local : local_) CheckEnded(*local);
}

void ServiceCommunicator::CheckEnded(LocalRank& rank) {
  if (failed_ || rank.has_failed || rank.owner == nullptr) return;
  const Command* next = rank.next();
  if (next == nullptr) return;
  if (const auto why = ended_.WhyNever(rank.rank, rank.progress, next->AsCall()))
    FailRank(rank, {ErrorCode::kPeerFailed, *why});
}

void ServiceCommunicator::FailRank(LocalRank& rank, const Error& why) {
  rank.has_failed = true;
  rank.why_failed = Departures::FirstCause(why.message);
  rank.queue.clear();
  rank.owner->Failed(rank.line, why);
  // Who waits for messages of its need not wait until it has left.
  TellEnd(PeerKind::kRankFailed, rank, rank.why_failed);
  HearEnded(rank.rank, rank.progress, rank.why_failed);
  if (std::all_of(local_.begin(), local_.end(),
                  [](const auto& each) { return each->owner == nullptr || each->has_failed; }))
    shown_failure_ = why;
}

void ServiceCommunicator::Fail(const Error& why, bool tell) {
  if (failed_) return;
  failed_ = shown_failure_ = why;
  barrier_.phase = BarrierPhase::kFailed;
  if (tell && root_ != nullptr)
    root_->Send({.kind = PeerKind::kFailed,
                 .words = {static_cast<int64_t>(why.code)},
                 .texts = {why.message}});
  for (const auto& rank : local_) {
    rank->planned.reset();
    rank->exchange.reset();
    rank->running.reset();
    rank->epoch = nullptr;
    rank->queue.clear();
    if (rank->owner == nullptr || std::exchange(rank->has_failed, true)) continue;
    if (stage_ == Stage::kActive)
      rank->owner->Failed(rank->line, why);
    else
      rank->owner->JoinRefused(rank->line, why);
  }
  Announce();
  epochs_.clear();
}

Regrouping& ServiceCommunicator::Regroups() {
  // One that is over answers nobody any more.
  if (regrouping_ != nullptr && !regrouping_->is_over()) return *regrouping_;
  regrouping_ = std::make_unique<Regrouping>(
      parts_.loop,
      Regrouping::Party{.secret = id_.secret,
                        .self = static_cast<size_t>(barrier_.self),
                        .daemons = members_,
                        .num_ranks = num_ranks_},
      [this] { return parts_.make_id(tenant_); }, parts_.await);
  for (const auto& rank : local_)
    if (rank->owner == nullptr) regrouping_->SetGone(rank->rank);
  return *regrouping_;
}

Status ServiceCommunicator::Regroup(uint32_t line, const RankOwner& owner, const RegroupAsk& ask,
                                    int64_t until_ns, Regrouping::Answer answer) {
  LocalRank* rank = Find(line, owner);
  if (rank == nullptr || members_.empty() || stage_ != Stage::kActive)
    return InvalidArgument("not all its ranks had joined");
  rank->promised.reset();  // it comes again: what it was promised before did not come about
  Regroups().Ask(rank->rank, ask, until_ns,
                 [this, alive = alive_, line, &owner,
                  answer = std::move(answer)](const Result<Regrouped>& become) {
                   LocalRank* asked = *alive ? Find(line, owner) : nullptr;
                   const auto next =
                       become ? bootstrap::Decode(become->id)
                              : Result<bootstrap::Address>(MakeError(ErrorCode::kNotFound, ""));
                   if (asked != nullptr && next) asked->promised = {next->secret, become->rank};
                   answer(become);
                 });
  return {};
}

bool ServiceCommunicator::Promises(const std::array<uint64_t, 2>& secret, int64_t rank) const {
  return std::any_of(local_.begin(), local_.end(), [&](const auto& local) {
    if (local->owner == nullptr) return false;
    // One that asks is not to be taken for absent because its answer is still on its way.
    if (regrouping_ != nullptr && regrouping_->Asks(local->rank)) return true;
    return (id_.secret == secret && local->rank == rank) ||
           (local->promised && local->promised->first == secret && local->promised->second == rank);
  });
}

void ServiceCommunicator::AcceptRegroup(std::unique_ptr<PeerLink> link, const PeerFrame& frame) {
  if (members_.empty() || is_over())
    link->Send(Regrouping::Nobody());
  else
    Regroups().Accept(std::move(link), frame);
}

bool ServiceCommunicator::is_over() const {
  const bool all_left = std::all_of(local_.begin(), local_.end(),
                                    [](const auto& rank) { return rank->owner == nullptr; });
  if (!all_left) return false;
  return failed_ || stage_ != Stage::kActive || left_.size() == static_cast<size_t>(num_ranks_);
}

// --- Reports -------------------------------------------------------------------------------------

void ServiceCommunicator::Tick(int64_t now_ns) {
  constexpr int64_t kLongNs = 100'000'000;
  if (regrouping_ != nullptr && regrouping_->Advance(now_ns)) regrouping_.reset();
  chunks_.Tick(now_ns);
  followed_.Tick();
  announcer_.Tick(now_ns);
  if (root_ != nullptr) root_->Watch(now_ns);
  if (ring_out_ != nullptr && !failed_ && !is_over()) WatchRing(now_ns);
  if (failed_ || stage_ != Stage::kActive) return;
  // What was sent by operations that are over goes on, on other ways if need be.
  for (const auto& [number, epoch] : epochs_)
    if (!epoch->is_quiet())
      for (size_t local = 0; local < local_.size(); ++local) epoch->PollSockets(local);
  CheckDrained();
  path_watch_.Tick(now_ns);
  for (const auto& rank : local_) {
    if (rank->has_failed) continue;
    const Command* oldest = rank->next();
    const int64_t waits = oldest == nullptr ? 0 : now_ns - oldest->posted_ns;
    const bool changed =
        rank->issued != rank->told_issued || rank->completed != rank->told_completed;
    // Others may wait for it: who waits for nothing says so, too.
    if (waits < kLongNs && !(oldest == nullptr && changed)) continue;
    rank->told_issued = rank->issued;
    rank->told_completed = rank->completed;
    PeerFrame progress{.kind = PeerKind::kProgress,
                       .words = {rank->rank, static_cast<int64_t>(rank->issued),
                                 static_cast<int64_t>(rank->completed), waits,
                                 static_cast<int64_t>(rank->progress.collectives)},
                       .texts = {oldest == nullptr ? "" : oldest->Text()}};
    for (const int32_t peer : rank->PeersWaitedFor()) progress.words.push_back(peer);
    root_->Send(progress);
  }
}

void ServiceCommunicator::WatchRing(int64_t now_ns) {
  constexpr int64_t kPatienceNs = 10'000'000'000;
  // Where ranks have left there is no further change, and the next daemon may be through with the communicator.
  if (!left_.empty() && ring_out_->is_quiet()) return;
  ring_out_->Watch(now_ns);
  // Without a change it carries nothing, and is sought for as long as the communicator lives. In a change launches wait for it.
  const int64_t since_ns = ring_out_->unheard_since_ns();
  if (!ring_is_needed_ || !left_.empty() || ring_out_->is_connected() || since_ns == 0 ||
      now_ns - since_ns < kPatienceNs)
    return;
  Fail({ErrorCode::kPeerFailed,
        fmt::format(
            "the ring of daemons was cut for {} s in a change of strategy, from {} to {}: {}",
            kPatienceNs / 1'000'000'000, parts_.host, ring_out_->remote().ToText(),
            ring_out_->why_lost())},
       true);
}

std::string_view ServiceCommunicator::phase() const {
  if (has_failed()) return "failed";
  return stage_ == Stage::kActive ? Name(barrier_.phase) : "joining";
}

std::string ServiceCommunicator::strategy() const {
  const auto current = epochs_.find(barrier_.epoch);
  return current == epochs_.end() ? "none" : current->second->strategy().Describe();
}

std::string ServiceCommunicator::flows() const {
  const auto current = epochs_.find(barrier_.epoch);
  return current == epochs_.end() ? "" : current->second->strategy().flows_text();
}

size_t ServiceCommunicator::connections() const {
  size_t count = 0;
  for (const auto& [number, epoch] : epochs_) count += epoch->connections();
  return count;
}

}  // namespace tutti::service

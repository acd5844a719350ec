#include "core.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "bootstrap.h"
#include "listeners.h"
#include "operator_ports.h"
#include "reports.h"
#include "tls_gateway.h"
#include "tutti/base/clock.h"
#include "tutti/base/host_name.h"
#include "tutti/base/result.h"

namespace tutti::service {
namespace {

constexpr int64_t kTickNs = 100'000'000;
constexpr int64_t kStrangerNs = 1'000'000'000;  // to say who it is
constexpr size_t kMaxStrangers = 64, kMaxIds = 4096, kMaxFailedJoins = 1024;

}  // namespace

Daemon::Core::Core(const DaemonOptions& options, std::unique_ptr<EventLoop> loop, CoreParts parts)
    : options_(options),
      host_(options.host.empty() ? ShortHostName() : options.host),
      loop_(std::move(loop)),
      planner_(std::move(parts.planner)),
      devices_([this] { loop_->Wake(); }),
      barrier_(parts.barrier),
      started_ns_(NowNs()) {
  if (planner_ == nullptr) planner_ = std::make_unique<ThreadWorker>([this] { loop_->Wake(); });
  if (options_.runtimes > 1)
    helpers_ = std::make_unique<MoveHelpers>(MoveHelpersOptions{.threads = options_.runtimes - 1});
  for (const TenantOptions& tenant : options_.tenants) AddTenant(tenant);
}

Tenant& Daemon::Core::AddTenant(const TenantOptions& options) {
  tenants_.push_back(std::make_unique<Tenant>());
  tenants_.back()->options = options;
  return *tenants_.back();
}

Daemon::Core::~Core() {
  planner_.reset();
  devices_.End();
  for (const auto& session : sessions_) session->Close("the service ends");
  sessions_.clear();
  operators_.clear();
  communicators_.clear();
  roots_.clear();
  strangers_.clear();
  ports_.reset();
  acceptors_.clear();
}

Result<std::unique_ptr<Daemon::Core>> Daemon::Core::Start(const DaemonOptions& options,
                                                          CoreParts parts) {
  Result<std::unique_ptr<EventLoop>> loop = EventLoop::Make();
  if (!loop) return tl::unexpected(loop.error());
  std::unique_ptr<Core> core(new Core(options, std::move(*loop), std::move(parts)));
  if (const Status listening = core->Listen(); !listening) return tl::unexpected(listening.error());
  return core;
}

Status Daemon::Core::Listen() {
  // Daemons know each other by addresses of version 4.
  if (const IpAddress first = FirstAddress(); first.is_v4()) control_.address = first;
  control_.port = options_.port;
  if (!options_.listen.empty()) {
    in_addr address{};
    if (inet_pton(AF_INET, options_.listen.c_str(), &address) != 1)
      return InvalidArgument(
          fmt::format("listen: got '{}', wanted an IPv4 address", options_.listen));
    control_.address = ntohl(address.s_addr);
  }
  for (const std::string& nic : options_.nics) {
    in_addr address{};
    if (inet_pton(AF_INET, nic.c_str(), &address) != 1)
      return InvalidArgument(fmt::format("nics: got '{}', wanted an IPv4 address", nic));
    nics_.push_back(ntohl(address.s_addr));
  }
  if (options_.tls.is_on()) {
    Result<std::unique_ptr<Gateway>> gateway = StartTlsGateway(options_.tls, options_.log);
    if (!gateway) return tl::unexpected(gateway.error());
    gateway_ = std::move(*gateway);
    loop_->SetGateway(gateway_.get());
  }
  Result<Listeners> listeners = OpenListeners(options_, gateway_.get(), control_);
  if (!listeners) return tl::unexpected(listeners.error());
  const auto accept = [this](Listener& listener, void (Core::*taken)(ipc::Descriptor)) {
    acceptors_.push_back(std::make_unique<Acceptor>(
        *loop_, std::move(listener.socket), listener.unlink,
        [this, taken](ipc::Descriptor socket) { (this->*taken)(std::move(socket)); }));
  };
  accept(listeners->tenants, &Core::AcceptTenant);
  accept(listeners->peers, &Core::AcceptPeer);
  peers_acceptor_ = acceptors_.back().get();
  accept(listeners->admin, &Core::AcceptOperator);
  Result<std::unique_ptr<OperatorPorts>> ports =
      OperatorPorts::Start(*this, std::move(listeners->metrics), std::move(listeners->ras));
  if (!ports) return tl::unexpected(ports.error());
  ports_ = std::move(*ports);
  return {};
}

int64_t Daemon::Core::TimesWithoutDescriptors() const {
  int64_t times = 0;
  for (const auto& acceptor : acceptors_) times += acceptor->times_without_descriptors();
  return times;
}

// --- Who comes -----------------------------------------------------------------------------------

void Daemon::Core::AcceptTenant(ipc::Descriptor socket) {
  const Result<ipc::Caller> caller = ipc::CallerOf(socket.fd());
  if (!caller) return;
  const int fd = socket.fd();
  sessions_.push_back(std::make_unique<Session>(*this, std::move(socket), *caller));
  Session* session = sessions_.back().get();
  if (session->process() >= 0)
    loop_->Add(session->process(), EPOLLIN, [this, session](uint32_t) {
      session->Close("its process has ended");
      next_tick_ns_ = 0;
    });
  loop_->Add(fd, EPOLLIN, [this, session](uint32_t) {
    const bool was_known = session->doorbell() >= 0;
    session->Hear();
    if (!session->is_open()) next_tick_ns_ = 0;  // to be removed
    if (was_known || session->doorbell() < 0) return;
    const int bell = session->doorbell();
    loop_->Add(bell, EPOLLIN, [bell](uint32_t) {
      uint64_t rung = 0;
      [[maybe_unused]] const ssize_t size = read(bell, &rung, sizeof(rung));
    });
  });
}

void Daemon::Core::AcceptPeer(ipc::Descriptor socket) {
  // In a burst, those that have been heard would stay until the next tick.
  if (strangers_.size() >= kMaxStrangers) RemoveStrangersHeard();
  if (strangers_.size() >= kMaxStrangers) peers_acceptor_->Rest();
  Stranger& stranger = strangers_.emplace_back();
  stranger.until_ns = NowNs() + kStrangerNs;
  stranger.link = std::make_unique<PeerLink>(
      *loop_, socket.Release(),
      PeerLink::Handlers{
          .frame = [this, &stranger](const PeerFrame& frame) { Hear(stranger, frame); },
          .lost = [&stranger](const std::string&) { stranger.done = true; }},
      &peer_links_);
}

void Daemon::Core::Hear(Stranger& stranger, const PeerFrame& frame) {
  if (stranger.done) return;
  stranger.done = true;
  if (frame.words.size() < 3) return;
  const Secret secret = {static_cast<uint64_t>(frame.words[0]),
                         static_cast<uint64_t>(frame.words[1])};
  if (frame.kind == PeerKind::kRing) {
    const auto found = communicators_.find(secret);
    if (found != communicators_.end()) found->second->AcceptRing(std::move(stranger.link));
    return;
  }
  if (frame.kind == PeerKind::kBusy) {
    for (const auto& [of, communicator] : communicators_)
      if (communicator->Follows(secret))
        return communicator->AcceptFollowed(std::move(stranger.link), frame);
    return;
  }
  if (frame.kind == PeerKind::kRegroup || frame.kind == PeerKind::kRegroupGone) {
    const auto found = communicators_.find(secret);
    if (found == communicators_.end())
      stranger.link->Send(Regrouping::Nobody());
    else
      found->second->AcceptRegroup(std::move(stranger.link), frame);
    return;
  }
  if (frame.kind == PeerKind::kAwaited) return AnswerWhoIsAbsent(*stranger.link, frame);
  if (frame.kind != PeerKind::kJoin) return;
  std::unique_ptr<RootPart>& root = roots_[secret];
  if (root == nullptr) {
    if (!TakeId(secret)) {
      roots_.erase(secret);
      const auto failed = std::find_if(failed_joins_.begin(), failed_joins_.end(),
                                       [&secret](const auto& one) { return one.first == secret; });
      return RefuseJoin(*stranger.link, frame,
                        failed != failed_joins_.end()
                            ? failed->second
                            : Error{ErrorCode::kInvalidArgument,
                                    "the unique id is not of this daemon, or was used before"});
    }
    root = std::make_unique<RootPart>(*loop_, secret);
  }
  root->Accept(std::move(stranger.link), frame);
}

void Daemon::Core::RefuseJoin(PeerLink& link, const PeerFrame& frame, const Error& why) const {
  link.Send({.kind = PeerKind::kRefused,
             .words = {frame.words.size() > 3 ? frame.words[3] : 0, static_cast<int64_t>(why.code)},
             .texts = {why.message}});
}

void Daemon::Core::Await(const UniqueId& id, std::vector<Regrouping::Awaited> awaited) {
  const Result<bootstrap::Address> address = bootstrap::Decode(id);
  // Another daemon may be the root of a grow.
  if (!address || address->root != control_) return;
  auto root = roots_.find(address->secret);
  if (root == roots_.end() && TakeId(address->secret))
    root =
        roots_.emplace(address->secret, std::make_unique<RootPart>(*loop_, address->secret)).first;
  if (root != roots_.end()) root->second->Await(std::move(awaited));
}

void Daemon::Core::AnswerWhoIsAbsent(PeerLink& link, const PeerFrame& frame) const {
  const Secret secret = {static_cast<uint64_t>(frame.words[0]),
                         static_cast<uint64_t>(frame.words[1])};
  PeerFrame absent{.kind = PeerKind::kAbsent};
  for (size_t i = 2; i < frame.words.size(); ++i) {
    const int64_t rank = frame.words[i];
    if (std::none_of(communicators_.begin(), communicators_.end(),
                     [&](const auto& each) { return each.second->Promises(secret, rank); }))
      absent.words.push_back(rank);
  }
  link.Send(absent);
}

bool Daemon::Core::TakeId(const Secret& secret) {
  for (auto& [tenant, made] : made_ids_)
    if (const auto found = std::find(made.begin(), made.end(), secret); found != made.end()) {
      made.erase(found);
      return true;
    }
  return false;
}

void Daemon::Core::AcceptOperator(ipc::Descriptor socket) {
  operators_.push_back(std::make_unique<AdminConnection>(*loop_, *this, std::move(socket)));
}

// --- What sessions ask ---------------------------------------------------------------------------

Tenant* Daemon::Core::FindTenant(uint32_t user, const std::string& token) {
  // Those of the configuration first: it may have been changed since a user came as a tenant of its own.
  for (const auto& tenant : tenants_) {
    const TenantOptions& options = tenant->options;
    if (tenant->is_anybody) continue;
    const bool is_user =
        options.users.empty() ||
        std::find(options.users.begin(), options.users.end(), user) != options.users.end();
    const bool has_secret = !options.token.empty() || !options.users.empty();
    if (is_user && has_secret && options.token == token) return tenant.get();
  }
  if (!options_.anybody || !token.empty()) return nullptr;
  const std::string name = fmt::format("user-{}", user);
  for (const auto& tenant : tenants_)
    if (tenant->is_anybody && tenant->options.name == name) return tenant.get();
  Tenant& tenant = AddTenant({.name = name, .users = {user}});
  tenant.is_anybody = true;
  return &tenant;
}

Result<UniqueId> Daemon::Core::MakeId(const Tenant& tenant) {
  const Secret secret = DrawSecret();
  // Who makes ids for ever loses the oldest of its own.
  std::deque<Secret>& made = made_ids_[&tenant];
  made.push_back(secret);
  if (made.size() > kMaxIds) made.pop_front();
  return bootstrap::Encode({.root = control_, .secret = secret});
}

Result<ServiceCommunicator*> Daemon::Core::JoinCommunicator(Tenant& tenant, const UniqueId& id,
                                                            int32_t num_ranks, int32_t rank,
                                                            RankOwner& owner, uint32_t line) {
  const Result<bootstrap::Address> address = bootstrap::Decode(id);
  if (!address) return tl::unexpected(address.error());
  const auto found = communicators_.find(address->secret);
  if (found != communicators_.end() && &found->second->tenant() != &tenant)
    return InvalidArgument("this unique id is another tenant's");
  std::unique_ptr<ServiceCommunicator>& communicator = communicators_[address->secret];
  turns_are_old_ = true;
  if (communicator == nullptr)
    communicator = std::make_unique<ServiceCommunicator>(
        DaemonParts{*loop_, *planner_, control_, host_, nics_,
                    [this](const Tenant& of) { return MakeId(of); },
                    [this](const UniqueId& next, std::vector<Regrouping::Awaited> awaited) {
                      Await(next, std::move(awaited));
                    },
                    helpers_.get(), barrier_, &metrics_.path_bytes},
        tenant, CommunicatorId{address->secret, address->root}, num_ranks);
  if (const Status joined = communicator->Join(rank, num_ranks, owner, line); !joined)
    return tl::unexpected(joined.error());
  return communicator.get();
}

// --- The thread ----------------------------------------------------------------------------------

bool Daemon::Core::Round() {
  bool moved = false;
  for (const auto& session : sessions_)
    if (session->TakeCommands()) moved = true;
  if (GiveTurns()) moved = true;
  return moved;
}

void Daemon::Core::MakeTurns() {
  turns_are_old_ = false;
  turns_.clear();
  for (const auto& tenant : tenants_) {
    Turn turn;
    turn.tenant = tenant.get();
    for (const auto& [secret, communicator] : communicators_)
      if (&communicator->tenant() == tenant.get()) turn.communicators.push_back(communicator.get());
    if (!turn.communicators.empty()) turns_.push_back(std::move(turn));
  }
}

bool Daemon::Core::GiveTurns() {
  if (turns_are_old_) MakeTurns();
  bool moved = false;
  for (Turn& turn : turns_) {
    int32_t left = turn.tenant->options.weight;
    for (size_t tried = 0; tried < turn.communicators.size() && left > 0; ++tried) {
      ServiceCommunicator& communicator = *turn.communicators[turn.next];
      turn.next = (turn.next + 1) % turn.communicators.size();
      for (size_t rank = communicator.local().size(); rank > 0 && left > 0; --rank) {
        if (!communicator.PollNext(kTurnBytes)) break;
        moved = true;
        --left;
      }
    }
  }
  return moved;
}

void Daemon::Core::Run() {
  constexpr int kRoundsBetweenSockets = 16, kRoundsBeforeYields = 4;
  constexpr int64_t kIdleNs = 200'000;  // before it sleeps
  int idle = 0;                         // rounds in which nothing moved
  int64_t idle_since_ns = 0;
  while (!stops_) {
    ++rounds_;
    if (Round()) {
      idle = 0;
      if (rounds_ % kRoundsBetweenSockets == 0) LookUp(0);
      continue;
    }
    if (++idle == 1) idle_since_ns = NowNs();
    if (idle % kRoundsBetweenSockets == 1 && LookUp(0)) {
      idle = 0;
    } else if (idle > kRoundsBeforeYields) {
      // Whoever is to run next may share the core.
      std::this_thread::yield();
      if (NowNs() - idle_since_ns >= kIdleNs && Sleep()) idle = 0;
    }
  }
}

bool Daemon::Core::LookUp(int wait_ms) {
  bool happened = loop_->Poll(wait_ms);
  if (planner_->RunFinished()) happened = true;
  if (devices_.RunFinished()) happened = true;
  if (const int64_t now = NowNs(); now >= next_tick_ns_) Tick(now);
  return happened;
}

int Daemon::Core::MostSleepMs() const {
  constexpr int kStuckMs = 2, kIdleMs = 100;
  const bool works = std::any_of(communicators_.begin(), communicators_.end(),
                                 [](const auto& each) { return each.second->has_work(); });
  return works ? kStuckMs : kIdleMs;
}

bool Daemon::Core::Sleep() {
  ++sleeps_;
  for (const auto& session : sessions_) session->SayWhetherSleeping(true);
  const bool commands = std::any_of(sessions_.begin(), sessions_.end(),
                                    [](const auto& session) { return session->has_commands(); });
  const int64_t from_ns = NowNs();
  const bool woken = LookUp(commands ? 0 : MostSleepMs());
  slept_ns_ += NowNs() - from_ns;
  for (const auto& session : sessions_) session->SayWhetherSleeping(false);
  return woken || commands;
}

void Daemon::Core::Tick(int64_t now_ns) {
  next_tick_ns_ = now_ns + kTickNs;
  for (const auto& [secret, communicator] : communicators_) communicator->Tick(now_ns);
  for (const auto& [secret, root] : roots_) root->Tick(now_ns);
  for (Stranger& stranger : strangers_)
    if (now_ns >= stranger.until_ns) stranger.done = true;
  RemoveEnded();
  for (const auto& acceptor : acceptors_) acceptor->Tick();
  ports_->Tick(now_ns);
  if (options_.tick) options_.tick();
}

void Daemon::Core::RemoveStrangersHeard() {
  strangers_.remove_if([](const Stranger& stranger) { return stranger.done; });
}

void Daemon::Core::RemoveEnded() {
  RemoveStrangersHeard();
  operators_.remove_if([](const auto& connection) { return connection->is_over(); });
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    if ((*at)->is_open()) {
      ++at;
      continue;
    }
    if (const Tenant* tenant = (*at)->tenant(); tenant != nullptr) {
      Log(fmt::format("tenant {}, process {}: {}", tenant->options.name, (*at)->process_number(),
                      (*at)->why_closed()));
      ports_->Tell({.event = "PEER_DEAD",
                    .tenant = tenant->options.name,
                    .host = host_,
                    .process = (*at)->process_number(),
                    .details = (*at)->why_closed()});
    }
    loop_->Remove((*at)->socket());
    for (const int fd : {(*at)->doorbell(), (*at)->process()})
      if (fd >= 0) loop_->Remove(fd);
    at = sessions_.erase(at);
  }
  if (std::erase_if(communicators_, [](const auto& each) { return each.second->may_go(); }) > 0)
    turns_are_old_ = true;
  for (auto at = roots_.begin(); at != roots_.end();) {
    if (!at->second->is_over()) {
      ++at;
      continue;
    }
    if (const auto& why = at->second->failed_gathering())
      failed_joins_.emplace_back(at->first, *why);
    if (failed_joins_.size() > kMaxFailedJoins) failed_joins_.pop_front();
    at = roots_.erase(at);
  }
}

ServiceCommunicator* Daemon::Core::FindCommunicator(const std::string& label) const {
  for (const auto& [secret, communicator] : communicators_)
    if (communicator->id().Label() == label) return communicator.get();
  return nullptr;
}

RootPart* Daemon::Core::FindRoot(const std::string& label) const {
  for (const auto& [secret, root] : roots_)
    if (CommunicatorId{secret, {}}.Label() == label) return root.get();
  return nullptr;
}

void Daemon::Core::Answer(const std::string& request, AdminReply reply) {
  Reports(*this).Answer(request, std::move(reply));
}

}  // namespace tutti::service

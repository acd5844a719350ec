#include "core.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "bootstrap.h"
#include "reports.h"
#include "tutti/base/clock.h"
#include "tutti/base/host_name.h"
#include "tutti/base/result.h"

namespace tutti::service {
namespace {

constexpr int64_t kTickNs = 100'000'000;
constexpr int64_t kStrangerNs = 1'000'000'000;  // to say who it is
constexpr size_t kMaxStrangers = 64, kMaxIds = 4096;

}  // namespace

Daemon::Core::Core(const DaemonOptions& options, std::unique_ptr<EventLoop> loop)
    : options_(options),
      host_(options.host.empty() ? ShortHostName() : options.host),
      loop_(std::move(loop)),
      planner_(std::make_unique<Planner>([this] { loop_->Wake(); })),
      started_ns_(NowNs()) {
  for (const TenantOptions& tenant : options_.tenants)
    tenants_.push_back(std::make_unique<Tenant>(Tenant{.options = tenant}));
}

Daemon::Core::~Core() {
  planner_.reset();
  for (const auto& session : sessions_) session->Close("the service ends");
  sessions_.clear();
  operators_.clear();
  communicators_.clear();
  roots_.clear();
  strangers_.clear();
  if (tenants_listener_.is_open()) unlink(options_.socket.c_str());
  if (admin_listener_.is_open()) unlink(options_.admin.c_str());
}

Result<std::unique_ptr<Daemon::Core>> Daemon::Core::Start(const DaemonOptions& options) {
  Result<std::unique_ptr<EventLoop>> loop = EventLoop::Make();
  if (!loop) return tl::unexpected(loop.error());
  std::unique_ptr<Core> core(new Core(options, std::move(*loop)));
  if (const Status listening = core->Listen(); !listening) return tl::unexpected(listening.error());
  return core;
}

Status Daemon::Core::Listen() {
  for (const std::string& path : {options_.socket, options_.admin}) {
    std::error_code ignored;  // the socket says it
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  }
  control_.address = FirstAddress();
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
  const Endpoint wanted = control_;
  peers_listener_ = ipc::Descriptor(ListenAt(control_));
  if (!peers_listener_.is_open())
    return MakeError(ErrorCode::kIo,
                     fmt::format("cannot listen at {}: {}", wanted.ToText(), std::strerror(errno)));
  Result<ipc::Descriptor> tenants =
      ipc::Listen(options_.socket, ipc::SocketKind::kPackets, ipc::OpenTo::kAnybody);
  if (!tenants) return tl::unexpected(tenants.error());
  tenants_listener_ = std::move(*tenants);
  Result<ipc::Descriptor> admin =
      ipc::Listen(options_.admin, ipc::SocketKind::kStream, ipc::OpenTo::kOwner);
  if (!admin) return tl::unexpected(admin.error());
  admin_listener_ = std::move(*admin);
  loop_->Add(tenants_listener_.fd(), EPOLLIN, [this](uint32_t) { AcceptTenants(); });
  loop_->Add(peers_listener_.fd(), EPOLLIN, [this](uint32_t) { AcceptPeers(); });
  loop_->Add(admin_listener_.fd(), EPOLLIN, [this](uint32_t) { AcceptOperators(); });
  return {};
}

// --- Who comes -----------------------------------------------------------------------------------

void Daemon::Core::AcceptTenants() {
  ipc::Descriptor socket(
      accept4(tenants_listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) return;
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

void Daemon::Core::AcceptPeers() {
  const int fd = accept4(peers_listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  if (strangers_.size() >= kMaxStrangers) {
    close(fd);
    return;
  }
  Stranger& stranger = strangers_.emplace_back();
  stranger.until_ns = NowNs() + kStrangerNs;
  stranger.link = std::make_unique<PeerLink>(
      *loop_, fd,
      PeerLink::Handlers{
          .frame = [this, &stranger](const PeerFrame& frame) { Hear(stranger, frame); },
          .lost = [&stranger](const std::string&) { stranger.done = true; }});
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
  if (frame.kind != PeerKind::kJoin) return;
  std::unique_ptr<RootPart>& root = roots_[secret];
  if (root == nullptr) {
    if (!TakeId(secret)) {
      roots_.erase(secret);
      stranger.link->Send({.kind = PeerKind::kRefused,
                           .words = {frame.words.size() > 3 ? frame.words[3] : 0,
                                     static_cast<int64_t>(ErrorCode::kInvalidArgument)},
                           .texts = {"the unique id is not of this daemon, or was used before"}});
      return;
    }
    root = std::make_unique<RootPart>();
  }
  root->Accept(std::move(stranger.link), frame);
}

bool Daemon::Core::TakeId(const Secret& secret) {
  for (auto& [tenant, made] : made_ids_)
    if (const auto found = std::find(made.begin(), made.end(), secret); found != made.end()) {
      made.erase(found);
      return true;
    }
  return false;
}

void Daemon::Core::AcceptOperators() {
  ipc::Descriptor socket(
      accept4(admin_listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.is_open())
    operators_.push_back(std::make_unique<AdminConnection>(*loop_, *this, std::move(socket)));
}

// --- What sessions ask ---------------------------------------------------------------------------

Tenant* Daemon::Core::FindTenant(uint32_t user, const std::string& token) {
  for (const auto& tenant : tenants_) {
    const TenantOptions& options = tenant->options;
    const bool is_user =
        options.users.empty() ||
        std::find(options.users.begin(), options.users.end(), user) != options.users.end();
    const bool has_secret = !options.token.empty() || !options.users.empty();
    if (is_user && has_secret && options.token == token) return tenant.get();
  }
  if (!options_.anybody || !token.empty()) return nullptr;
  tenants_.push_back(std::make_unique<Tenant>(
      Tenant{.options = {.name = fmt::format("user-{}", user), .users = {user}}}));
  return tenants_.back().get();
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
        DaemonParts{*loop_, *planner_, control_, host_, nics_}, tenant,
        CommunicatorId{address->secret, address->root}, num_ranks);
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
  if (const int64_t now = NowNs(); now >= next_tick_ns_) Tick(now);
  return happened;
}

bool Daemon::Core::Sleep() {
  constexpr int kStuckMs = 2, kIdleMs = 100;
  ++sleeps_;
  for (const auto& session : sessions_) session->SayWhetherSleeping(true);
  const bool commands = std::any_of(sessions_.begin(), sessions_.end(),
                                    [](const auto& session) { return session->has_commands(); });
  const bool works = std::any_of(communicators_.begin(), communicators_.end(),
                                 [](const auto& each) { return each.second->has_work(); });
  const bool woken = LookUp(commands ? 0 : works ? kStuckMs : kIdleMs);
  for (const auto& session : sessions_) session->SayWhetherSleeping(false);
  return woken || commands;
}

void Daemon::Core::Tick(int64_t now_ns) {
  next_tick_ns_ = now_ns + kTickNs;
  for (const auto& [secret, communicator] : communicators_) communicator->Tick(now_ns);
  for (Stranger& stranger : strangers_)
    if (now_ns >= stranger.until_ns) stranger.done = true;
  RemoveEnded();
}

void Daemon::Core::RemoveEnded() {
  strangers_.remove_if([](const Stranger& stranger) { return stranger.done; });
  operators_.remove_if([](const auto& connection) { return connection->is_over(); });
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    if ((*at)->is_open()) {
      ++at;
      continue;
    }
    if ((*at)->tenant() != nullptr)
      Log(fmt::format("tenant {}, process {}: {}", (*at)->tenant()->options.name,
                      (*at)->process_number(), (*at)->why_closed()));
    loop_->Remove((*at)->socket());
    for (const int fd : {(*at)->doorbell(), (*at)->process()})
      if (fd >= 0) loop_->Remove(fd);
    at = sessions_.erase(at);
  }
  if (std::erase_if(communicators_, [](const auto& each) { return each.second->is_over(); }) > 0)
    turns_are_old_ = true;
  std::erase_if(roots_, [](const auto& each) { return each.second->is_over(); });
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

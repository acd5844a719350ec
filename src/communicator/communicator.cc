#include "tutti/communicator.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "board.h"
#include "bootstrap.h"
#include "call.h"
#include "lanes.h"
#include "operation.h"
#include "schedules.h"
#include "tutti/base/deadline.h"
#include "tutti/base/file.h"
#include "tutti/base/hash.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

// At most, once this rank has failed: usually the others have said it within a millisecond.
constexpr double kOthersSay_s = 2;

// The address of this host that $TUTTI_HOST names, else of the first interface that is up and leads
// to other hosts, else of the loopback interface.
Result<uint32_t> ListenAddress() {
  if (const char* host = std::getenv("TUTTI_HOST"); host != nullptr && *host != '\0') {
    in_addr address{};
    if (inet_pton(AF_INET, host, &address) == 1) return ntohl(address.s_addr);
    return InvalidArgument(fmt::format("TUTTI_HOST: got '{}', wanted an IPv4 address", host));
  }
  uint32_t found = INADDR_LOOPBACK;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return found;
  for (const ifaddrs* at = interfaces; at != nullptr; at = at->ifa_next) {
    const bool usable = at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET &&
                        (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0 &&
                        std::strncmp(at->ifa_name, "docker", 6) != 0;
    if (!usable) continue;
    sockaddr_in address{};
    std::memcpy(&address, at->ifa_addr, sizeof(address));
    found = ntohl(address.sin_addr.s_addr);
    break;
  }
  freeifaddrs(interfaces);
  return found;
}

// Spares the other thread of a core.
void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Whether this process may read the memory of another, where `proof` stands.
bool CanRead(int64_t process, int64_t address, uint64_t proof) {
  uint64_t found = 0;
  const iovec into{&found, sizeof(found)};
  const iovec from{reinterpret_cast<void*>(static_cast<intptr_t>(address)), sizeof(found)};
  return process_vm_readv(static_cast<pid_t>(process), &into, 1, &from, 1, 0) ==
             static_cast<ssize_t>(sizeof(found)) &&
         found == proof;
}

// Only read: the message is one that is sent.
Message Send(int32_t peer, const void* data, int64_t bytes) {
  return {.peer = peer, .data = const_cast<void*>(data), .bytes = bytes, .is_send = true};
}
Message Receive(int32_t peer, void* data, int64_t bytes) {
  return {.peer = peer, .data = data, .bytes = bytes, .is_send = false};
}

}  // namespace

class Communicator::Rank {
 public:
  static Result<std::unique_ptr<Rank>> Join(const UniqueId& id, int32_t num_ranks, int32_t rank,
                                            const CommunicatorOptions& options);
  int32_t rank() const { return rank_; }
  int32_t num_ranks() const { return num_ranks_; }
  const CommunicatorOptions& options() const { return options_; }
  Status health() const {
    const std::lock_guard lock(fault_mutex_);
    if (fault_) return tl::unexpected(*fault_);
    return {};
  }
  // What runs looks at the flag; where nothing runs the others are told here.
  void Abort() {
    aborted_ = true;
    const std::unique_lock idle(running_, std::try_to_lock);
    if (idle) static_cast<void>(BeHealthy("nothing"));
  }

  Status Run(const CollectiveCall& call);
  Status Exchange(std::span<const Message> messages, const std::string& text);
  Result<const PlannedSchedule*> Choose(const CollectiveCall& call);
  bool UsesBoard(const CollectiveCall& call) const {
    return lanes_->common_area() != nullptr && BoardOperation::Fits(call, num_ranks_) &&
           !book_->Holds(call.kind, call.root);
  }
  Result<std::vector<std::string>> Share(const std::string& mine, const std::string& text);
  // Of what the caller gives. An error leaves the communicator as it was.
  Status CheckRank(int32_t rank, const char* what) const {
    if (rank >= 0 && rank < num_ranks_) return {};
    return InvalidArgument(
        fmt::format("{} {}: there are ranks 0 to {}", what, rank, num_ranks_ - 1));
  }

 private:
  struct Failure {
    Error error;
    double wait_s = 0;  // for what other ranks say of it
  };
  using PlanKey = std::pair<const PlannedSchedule*, PlanCall>;
  struct Kept {
    PlanKey key;
    std::unique_ptr<PlanOperation> operation;
  };
  static constexpr size_t kMostKept = 64;

  Rank(int32_t num_ranks, int32_t rank, const CommunicatorOptions& options)
      : num_ranks_(num_ranks), rank_(rank), options_(options) {}

  Status Meet(const UniqueId& id);
  // A round; who fails in it hears from the others why.
  Result<std::vector<std::string>> ShareWhenJoining(const std::string& mine,
                                                    const Deadline& deadline) {
    auto shares = link_->Share(mine, deadline, aborted_);
    if (!shares) return tl::unexpected(link_->Fail(shares.error(), kOthersSay_s));
    return shares;
  }
  Result<LocalRanks> MeetLocally(const std::vector<uint64_t>& hosts, const Deadline& deadline);
  bool IsInPlace(const CollectiveCall& call) const;
  // Elements of M.
  int64_t Elements(const CollectiveCall& call) const;
  Status Check(const CollectiveCall& call) const;
  Status RunPlan(const PlannedSchedule& planned, const CollectiveCall& call);
  Status RunOnBoard(const CollectiveCall& call);
  Status Finish(const std::optional<Failure>& failure, const CollectiveCall& call) {
    return failure ? FailBecause(*failure, ToText(call)) : Status();
  }
  // Block by block, without a plan.
  Status RunDirectly(const CollectiveCall& call);
  Status ExchangeNow(std::span<const Message> messages, const std::string& text);
  Result<PlanOperation*> OperationFor(const PlannedSchedule& planned, const PlanCall& call);
  // Of the only rank there is.
  static void Copy(const CollectiveCall& call);
  // Until it is over, or why it cannot be.
  std::optional<Failure> Drive(Operation& operation);
  // Before anything is sent: not failed, not aborted.
  Status BeHealthy(const std::string& text) {
    if (Status healthy = health(); !healthy) return healthy;
    if (aborted_) return FailBecause({Aborted()}, text);
    return {};
  }
  static Error Aborted() { return {ErrorCode::kCancelled, "aborted"}; }
  Status FailBecause(const Failure& failure, const std::string& text);

  int32_t num_ranks_, rank_;
  CommunicatorOptions options_;
  std::mutex running_;  // held while an operation runs
  std::atomic<bool> aborted_ = false, has_failed_ = false;
  mutable std::mutex fault_mutex_;
  std::optional<Error> fault_;
  std::optional<ScheduleBook> book_;
  std::optional<bootstrap::Link> link_;
  std::list<Kept> kept_;  // the one used last first
  uint64_t board_sequence_ = 0, board_done_ = 0;
  uint64_t proof_ = 0;  // what others read of this process's memory to see that they may
  std::vector<std::byte> scratch_;
  std::unique_ptr<Lanes> lanes_;  // gone before what its messages point to
};

// --- Joining -------------------------------------------------------------------------------------

Result<UniqueId> MakeUniqueId() {
  const Result<uint32_t> at = ListenAddress();
  if (!at) return tl::unexpected(at.error());
  const Result<bootstrap::Address> address = bootstrap::StartRoot(*at);
  if (!address) return tl::unexpected(address.error());
  return bootstrap::Encode(*address);
}

Result<UniqueId> ShareUniqueIdByFile(const std::string& path, int32_t rank, double timeout_s) {
  if (rank == 0) {
    Result<UniqueId> id = MakeUniqueId();
    if (!id) return id;
    const std::string_view bytes(reinterpret_cast<const char*>(id->bytes.data()), id->bytes.size());
    if (Status written = WriteFileAtomically(path, bytes); !written)
      return tl::unexpected(written.error());
    return id;
  }
  const Deadline deadline(timeout_s);
  while (true) {
    const Result<std::string> bytes = ReadFile(path);
    UniqueId id;
    if (bytes && bytes->size() == id.bytes.size()) {
      std::memcpy(id.bytes.data(), bytes->data(), id.bytes.size());
      return id;
    }
    if (bytes) return InvalidArgument(fmt::format("{}: holds no unique id", path));
    if (deadline.HasPassed())
      return MakeError(
          ErrorCode::kPeerFailed,
          fmt::format("{}: rank 0 has written no unique id within {} s", path, timeout_s));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Result<std::unique_ptr<Communicator::Rank>> Communicator::Rank::Join(
    const UniqueId& id, int32_t num_ranks, int32_t rank, const CommunicatorOptions& options) {
  if (num_ranks < 1 || rank < 0 || rank >= num_ranks)
    return InvalidArgument(fmt::format("rank {} of {} cannot be", rank, num_ranks));
  std::unique_ptr<Rank> self(new Rank(num_ranks, rank, options));
  if (Status met = self->Meet(id); !met)
    return Within(fmt::format("rank {} of {} joins", rank, num_ranks), met.error());
  return self;
}

Status Communicator::Rank::Meet(const UniqueId& id) {
  if (options_.schedules.empty())
    if (const char* folder = std::getenv("TUTTI_SCHEDULES"); folder != nullptr)
      options_.schedules = folder;
  if (const char* shared = std::getenv("TUTTI_SHARED_MEMORY"); shared != nullptr)
    options_.shared_memory = options_.shared_memory && std::string_view(shared) != "0";
  Result<ScheduleBook> book = ScheduleBook::Load(options_.schedules, num_ranks_);
  if (!book) return tl::unexpected(book.error());
  book_ = std::move(*book);
  const Result<bootstrap::Address> root = bootstrap::Decode(id);
  if (!root) return tl::unexpected(root.error());
  const Deadline deadline(options_.timeout_s);
  Result<bootstrap::Link> link = bootstrap::Link::Join(*root, num_ranks_, rank_, deadline);
  if (!link) return tl::unexpected(link.error());
  link_ = std::move(*link);
  TcpOptions tcp;
  tcp.cookie = root->secret;
  tcp.address = link_->local().address;
  // Ranks may come to an operation long after one another: its deadline ends it, not a connection's.
  constexpr double kLong = 1e9;
  tcp.patience_s = options_.timeout_s > 0 ? options_.timeout_s : kLong;
  Result<std::unique_ptr<TcpTransport>> transport = TcpTransport::Listen(rank_, tcp);
  if (!transport) return tl::unexpected(transport.error());
  const Endpoint own = (*transport)->endpoint();
  const uint64_t host = options_.shared_memory ? HostWord() : 0;
  const std::string mine =
      WordsToBytes({int64_t{own.address}, int64_t{own.port}, static_cast<int64_t>(book_->digest()),
                    static_cast<int64_t>(host)});
  const Result<std::vector<std::string>> shares = ShareWhenJoining(mine, deadline);
  if (!shares) return tl::unexpected(shares.error());
  std::vector<Endpoint> peers;
  std::vector<uint64_t> hosts;
  for (size_t peer = 0; peer < shares->size(); ++peer) {
    const auto words = Frame{FrameType::kShare, (*shares)[peer]}.Words(4);
    if (!words)
      return MakeError(ErrorCode::kPeerFailed, fmt::format("rank {} sent nonsense", peer));
    if (static_cast<uint64_t>((*words)[2]) != book_->digest())
      return InvalidArgument(
          fmt::format("the schedule libraries of ranks {} and {} differ", rank_, peer));
    peers.push_back({static_cast<uint32_t>((*words)[0]), static_cast<uint16_t>((*words)[1])});
    hosts.push_back(static_cast<uint64_t>((*words)[3]));
  }
  Result<LocalRanks> local = MeetLocally(hosts, deadline);
  if (!local) return tl::unexpected(local.error());
  lanes_ =
      std::make_unique<Lanes>(rank_, std::move(*transport), std::move(peers), std::move(*local));
  return {};
}

// Three rounds: where the memory of each host is, who could open it, who can read whose own.
Result<LocalRanks> Communicator::Rank::MeetLocally(const std::vector<uint64_t>& hosts,
                                                   const Deadline& deadline) {
  const uint64_t own = hosts[static_cast<size_t>(rank_)];
  LocalRanks local;
  std::vector<size_t> here;
  for (size_t peer = 0; peer < hosts.size(); ++peer) {
    const bool is_here = own != 0 && hosts[peer] == own;
    local.index.push_back(is_here ? static_cast<int32_t>(here.size()) : -1);
    if (is_here) here.push_back(peer);
  }
  const bool wanted = here.size() > 1 && here.size() <= LocalArea::kMostRanks;
  const bool is_first = wanted && here.front() == static_cast<size_t>(rank_);
  const auto num_here = static_cast<int32_t>(here.size());
  std::string place;
  if (is_first)
    if (auto area = LocalArea::Make(num_here)) {
      local.area = std::move(*area);
      const LocalArea::Place& at = local.area->place();
      place = WordsToBytes({at.process, at.descriptor, static_cast<int64_t>(at.token)});
    }
  const auto places = ShareWhenJoining(place, deadline);
  if (!places) return tl::unexpected(places.error());
  if (wanted && !is_first)
    if (const auto words = Frame{FrameType::kShare, (*places)[here.front()]}.Words(3))
      if (auto area = LocalArea::Open(
              {(*words)[0], (*words)[1], static_cast<uint64_t>((*words)[2])}, num_here))
        local.area = std::move(*area);
  // Threads of one process read each other's memory, other processes where the kernel allows it.
  proof_ = DrawSecret()[0];
  const std::string mine =
      local.area == nullptr
          ? std::string()
          : WordsToBytes({getpid(), static_cast<int64_t>(reinterpret_cast<intptr_t>(&proof_)),
                          static_cast<int64_t>(proof_)});
  const auto proofs = ShareWhenJoining(mine, deadline);
  if (!proofs) return tl::unexpected(proofs.error());
  bool all_mapped = true, readable = true;
  for (const size_t peer : here) {
    const auto words = Frame{FrameType::kShare, (*proofs)[peer]}.Words(3);
    all_mapped = all_mapped && words;
    readable =
        readable && words && CanRead((*words)[0], (*words)[1], static_cast<uint64_t>((*words)[2]));
    local.processes.push_back(words ? (*words)[0] : 0);
  }
  if (!all_mapped) local.area.reset();
  if (local.area != nullptr) local.area->CloseFile();
  const auto verdicts = ShareWhenJoining(readable ? "readable" : "", deadline);
  if (!verdicts) return tl::unexpected(verdicts.error());
  for (const size_t peer : here) readable = readable && (*verdicts)[peer] == "readable";
  if (!readable) local.processes.clear();
  return local;
}

// --- Running -------------------------------------------------------------------------------------

Status Communicator::Rank::FailBecause(const Failure& failure, const std::string& text) {
  const Error& error = failure.error;
  const Error all =
      link_->Fail({error.code, fmt::format("in {}: {}", text, error.message)}, failure.wait_s);
  lanes_->Break();
  const std::lock_guard lock(fault_mutex_);
  fault_ = all;
  has_failed_ = true;
  return tl::unexpected(all);
}

std::optional<Communicator::Rank::Failure> Communicator::Rank::Drive(Operation& operation) {
  constexpr int64_t kBudget = int64_t{256} << 10;
  constexpr std::chrono::milliseconds kCheck{1};
  std::optional<Deadline> deadline;
  Clock::time_point next_check;
  for (int stuck = 0;;) {
    const Interpreter::Outcome outcome = operation.Poll(kBudget);
    if (outcome == Interpreter::Outcome::kOver) break;
    const bool moved = lanes_->Poll();
    stuck = outcome == Interpreter::Outcome::kMoved || moved ? 0 : stuck + 1;
    if (stuck == 0) continue;
    if (const Status health = operation.health(); !health)
      return Failure{health.error(), kOthersSay_s};
    if (stuck < lanes_->spins()) {
      lanes_->is_crowded() ? std::this_thread::yield() : Pause();
    } else {
      operation.SaveWanted();
      bool over = false;
      lanes_->Sleep([&] {
        const Interpreter::Outcome last = operation.Poll(kBudget);
        over = last == Interpreter::Outcome::kOver;
        return last != Interpreter::Outcome::kStuck;
      });
      if (over) break;
    }
    const Clock::time_point now = Clock::now();
    if (!deadline) {
      deadline.emplace(options_.timeout_s);
      next_check = now + kCheck;
    }
    if (now < next_check) continue;
    next_check = now + kCheck;
    if (aborted_) return Failure{Aborted()};
    if (const Status others = link_->Check(); !others) return Failure{others.error()};
    if (deadline->HasPassed())
      return Failure{
          {ErrorCode::kPeerFailed, fmt::format("it did not end within {} s", options_.timeout_s)}};
  }
  lanes_->Flush();
  return std::nullopt;
}

int64_t Communicator::Rank::Elements(const CollectiveCall& call) const {
  return call.counts_blocks() ? call.count * num_ranks_ : call.count;
}

Status Communicator::Rank::Check(const CollectiveCall& call) const {
  constexpr int64_t kMostElements = int64_t{1} << 56;
  if (call.count < 0 || call.count > kMostElements / num_ranks_)
    return InvalidArgument(fmt::format("a count of {}", call.count));
  if (const Status root = CheckRank(call.root, "root"); !root) return root;
  const bool reads =
      call.kind != CollectiveKind::kBroadcast && call.kind != CollectiveKind::kScatter;
  const bool writes = call.kind != CollectiveKind::kReduce && call.kind != CollectiveKind::kGather;
  if (call.count > 0 && call.input == nullptr && (reads || rank_ == call.root))
    return InvalidArgument(fmt::format("{}: no input", ToText(call)));
  if (call.count > 0 && call.output == nullptr && (writes || rank_ == call.root))
    return InvalidArgument(fmt::format("{}: no output", ToText(call)));
  return {};
}

bool Communicator::Rank::IsInPlace(const CollectiveCall& call) const {
  const int64_t block = call.count * SizeOf(call.type) * rank_;
  switch (call.kind) {
    case CollectiveKind::kAllGather:
      return call.input == Advanced(call.output, block);
    case CollectiveKind::kReduceScatter:
      return call.output == Advanced(call.input, block);
    case CollectiveKind::kGather:
      return rank_ == call.root && call.input == Advanced(call.output, block);
    case CollectiveKind::kScatter:
      return rank_ == call.root && call.output == Advanced(call.input, block);
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV:
      return false;
    default:
      return call.input == call.output;
  }
}

void Communicator::Rank::Copy(const CollectiveCall& call) {
  if (call.input != call.output && call.count > 0)
    std::memmove(call.output, call.input, static_cast<size_t>(call.count * SizeOf(call.type)));
}

Result<const PlannedSchedule*> Communicator::Rank::Choose(const CollectiveCall& call) {
  return book_->Choose(call.kind, call.root, Elements(call) * SizeOf(call.type),
                       lanes_->common_area() != nullptr);
}

Status Communicator::Rank::Run(const CollectiveCall& call) {
  const std::lock_guard running(running_);
  if (Status checked = Check(call); !checked) return checked;
  if (aborted_ || has_failed_)
    if (Status healthy = BeHealthy(ToText(call)); !healthy) return healthy;
  if (num_ranks_ == 1) {
    Copy(call);
    return {};
  }
  if (UsesBoard(call)) return RunOnBoard(call);
  const Result<const PlannedSchedule*> planned = Choose(call);
  if (!planned) return tl::unexpected(planned.error());
  return *planned != nullptr ? RunPlan(**planned, call) : RunDirectly(call);
}

Result<PlanOperation*> Communicator::Rank::OperationFor(const PlannedSchedule& planned,
                                                        const PlanCall& call) {
  const PlanKey key{&planned, call};
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&key](const Kept& kept) { return kept.key == key; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return found->operation.get();
  }
  Result<std::unique_ptr<PlanOperation>> operation =
      PlanOperation::Make(planned.plan, call, rank_, *lanes_);
  if (!operation) return tl::unexpected(operation.error());
  kept_.push_front({key, std::move(*operation)});
  if (kept_.size() > kMostKept) kept_.pop_back();
  return kept_.front().operation.get();
}

Status Communicator::Rank::RunPlan(const PlannedSchedule& planned, const CollectiveCall& call) {
  const Result<PlanOperation*> operation = OperationFor(
      planned,
      {.count = Elements(call), .type = call.type, .op = call.op, .in_place = IsInPlace(call)});
  if (!operation) return tl::unexpected(operation.error());
  const auto scratch = static_cast<size_t>((*operation)->scratch_bytes());
  if (scratch_.size() < scratch) scratch_.resize(scratch);
  lanes_->SetSignature(SignatureOf(call, planned.digest));
  (*operation)->Begin(call.input, call.output, scratch_.data());
  return Finish(Drive(**operation), call);
}

Status Communicator::Rank::RunOnBoard(const CollectiveCall& call) {
  BoardOperation operation(call, *lanes_, ++board_sequence_, board_done_, rank_, num_ranks_);
  return Finish(Drive(operation), call);
}

Status Communicator::Rank::RunDirectly(const CollectiveCall& call) {
  const int64_t block = call.count * SizeOf(call.type);
  std::vector<Message> messages;
  const bool is_root = rank_ == call.root;
  for (int32_t i = 0; i < num_ranks_; ++i) {
    // Not everybody to rank 0 first.
    const int32_t to = (rank_ + i) % num_ranks_, from = (rank_ + num_ranks_ - i) % num_ranks_;
    if (call.kind == CollectiveKind::kAllToAll ||
        (call.kind == CollectiveKind::kScatter ? is_root : to == call.root))
      messages.push_back(Send(
          to, Advanced(call.input, call.kind == CollectiveKind::kGather ? 0 : block * to), block));
    if (call.kind == CollectiveKind::kAllToAll ||
        (call.kind == CollectiveKind::kGather ? is_root : from == call.root))
      messages.push_back(Receive(
          from, Advanced(call.output, call.kind == CollectiveKind::kScatter ? 0 : block * from),
          block));
  }
  return ExchangeNow(messages, ToText(call));
}

Status Communicator::Rank::Exchange(std::span<const Message> messages, const std::string& text) {
  const std::lock_guard running(running_);
  return ExchangeNow(messages, text);
}

Status Communicator::Rank::ExchangeNow(std::span<const Message> messages, const std::string& text) {
  std::vector<int64_t> own_sends, own_receives;
  for (const Message& message : messages) {
    if (const Status peer = CheckRank(message.peer, "peer"); !peer) return peer;
    if (message.bytes < 0 || (message.bytes > 0 && message.data == nullptr))
      return InvalidArgument(fmt::format("a message of {} bytes {} rank {} without data",
                                         message.bytes, message.is_send ? "to" : "from",
                                         message.peer));
    if (message.peer == rank_)
      (message.is_send ? own_sends : own_receives).push_back(message.bytes);
  }
  if (own_sends != own_receives)
    return InvalidArgument(
        fmt::format("rank {} sends itself {} messages of [{}] bytes and receives {} of [{}]", rank_,
                    own_sends.size(), fmt::join(own_sends, ", "), own_receives.size(),
                    fmt::join(own_receives, ", ")));
  if (Status healthy = BeHealthy(text); !healthy) return healthy;
  Fnv1a what;
  what.AddBytes(text);
  ExchangeOperation operation(messages, what.value(), rank_, *lanes_);
  const std::optional<Failure> failure = Drive(operation);
  return failure ? FailBecause(*failure, text) : Status();
}

Result<std::vector<std::string>> Communicator::Rank::Share(const std::string& mine,
                                                           const std::string& text) {
  const std::lock_guard running(running_);
  if (Status healthy = BeHealthy(text); !healthy) return tl::unexpected(healthy.error());
  Result<std::vector<std::string>> shares =
      link_->Share(mine, Deadline(options_.timeout_s), aborted_);
  if (!shares) return tl::unexpected(FailBecause({shares.error()}, text).error());
  return shares;
}

// --- Communicator --------------------------------------------------------------------------------

Communicator::Communicator(std::unique_ptr<Rank> self) : self_(std::move(self)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

Result<Communicator> Communicator::Join(const UniqueId& id, int32_t num_ranks, int32_t rank,
                                        const CommunicatorOptions& options) {
  Result<std::unique_ptr<Rank>> self = Rank::Join(id, num_ranks, rank, options);
  if (!self) return tl::unexpected(self.error());
  return Communicator(std::move(*self));
}

int32_t Communicator::rank() const { return self_->rank(); }
int32_t Communicator::num_ranks() const { return self_->num_ranks(); }
Status Communicator::health() const { return self_->health(); }
void Communicator::Abort() { self_->Abort(); }

Status Communicator::AllReduce(const void* input, void* output, int64_t count, DataType type,
                               ReduceOp op) {
  return self_->Run({CollectiveKind::kAllReduce, input, output, count, type, op, 0});
}
Status Communicator::AllGather(const void* input, void* output, int64_t count, DataType type) {
  return self_->Run({CollectiveKind::kAllGather, input, output, count, type, ReduceOp::kSum, 0});
}
Status Communicator::ReduceScatter(const void* input, void* output, int64_t count, DataType type,
                                   ReduceOp op) {
  return self_->Run({CollectiveKind::kReduceScatter, input, output, count, type, op, 0});
}
Status Communicator::Broadcast(const void* input, void* output, int64_t count, DataType type,
                               int32_t root) {
  return self_->Run({CollectiveKind::kBroadcast, input, output, count, type, ReduceOp::kSum, root});
}
Status Communicator::Reduce(const void* input, void* output, int64_t count, DataType type,
                            ReduceOp op, int32_t root) {
  return self_->Run({CollectiveKind::kReduce, input, output, count, type, op, root});
}
Status Communicator::Gather(const void* input, void* output, int64_t count, DataType type,
                            int32_t root) {
  return self_->Run({CollectiveKind::kGather, input, output, count, type, ReduceOp::kSum, root});
}
Status Communicator::Scatter(const void* input, void* output, int64_t count, DataType type,
                             int32_t root) {
  return self_->Run({CollectiveKind::kScatter, input, output, count, type, ReduceOp::kSum, root});
}
Status Communicator::AllToAll(const void* input, void* output, int64_t count, DataType type) {
  return self_->Run({CollectiveKind::kAllToAll, input, output, count, type, ReduceOp::kSum, 0});
}

Status Communicator::AllToAllV(const void* input, std::span<const int64_t> send_counts,
                               std::span<const int64_t> send_offsets, void* output,
                               std::span<const int64_t> receive_counts,
                               std::span<const int64_t> receive_offsets, DataType type) {
  const auto ranks = static_cast<size_t>(num_ranks());
  for (const std::span<const int64_t> list :
       {send_counts, send_offsets, receive_counts, receive_offsets})
    if (list.size() != ranks)
      return InvalidArgument(
          fmt::format("all-to-all-v of {} ranks: a list has {} numbers", ranks, list.size()));
  const int64_t size = SizeOf(type);
  std::vector<Message> messages;
  for (size_t i = 0; i < ranks; ++i) {
    const auto rank = static_cast<size_t>(this->rank());
    const size_t to = (rank + i) % ranks, from = (rank + ranks - i) % ranks;
    messages.push_back(Send(static_cast<int32_t>(to), Advanced(input, send_offsets[to] * size),
                            send_counts[to] * size));
    messages.push_back(Receive(static_cast<int32_t>(from),
                               Advanced(output, receive_offsets[from] * size),
                               receive_counts[from] * size));
  }
  return self_->Exchange(messages, fmt::format("all-to-all-v of {}", Name(type)));
}

Status Communicator::Exchange(std::span<const Message> messages) {
  return self_->Exchange(messages, "messages");
}

Status Communicator::Barrier() {
  const auto shares = self_->Share("barrier", "a barrier");
  if (!shares) return tl::unexpected(shares.error());
  return {};
}

Result<std::unique_ptr<Communicator>> Communicator::Split(int32_t colour, int32_t key) {
  struct Member {
    int64_t key = 0;
    int32_t rank = 0;
    auto operator<=>(const Member&) const = default;
  };
  const auto shares = self_->Share(WordsToBytes({colour, key}), "a split");
  if (!shares) return tl::unexpected(shares.error());
  std::vector<Member> members;
  for (size_t rank = 0; rank < shares->size(); ++rank) {
    const auto words = Frame{FrameType::kShare, (*shares)[rank]}.Words(2);
    if (!words)
      return MakeError(ErrorCode::kPeerFailed,
                       fmt::format("rank {} does not split, as rank {} does", rank, this->rank()));
    if (colour >= 0 && (*words)[0] == colour)
      members.push_back({(*words)[1], static_cast<int32_t>(rank)});
  }
  std::sort(members.begin(), members.end());
  // The first of each group makes its id; all hear all ids.
  std::string own_id;
  if (!members.empty() && members.front().rank == rank()) {
    const Result<UniqueId> id = MakeUniqueId();
    if (!id) return tl::unexpected(id.error());
    own_id.assign(reinterpret_cast<const char*>(id->bytes.data()), id->bytes.size());
  }
  const auto ids = self_->Share(own_id, "a split");
  if (!ids) return tl::unexpected(ids.error());
  if (members.empty()) return nullptr;
  const std::string& of_group = (*ids)[static_cast<size_t>(members.front().rank)];
  UniqueId id;
  if (of_group.size() != id.bytes.size())
    return MakeError(ErrorCode::kPeerFailed,
                     fmt::format("rank {} sent no unique id", members.front().rank));
  std::memcpy(id.bytes.data(), of_group.data(), id.bytes.size());
  const auto mine = std::find_if(members.begin(), members.end(),
                                 [this](const Member& member) { return member.rank == rank(); });
  Result<Communicator> part = Join(id, static_cast<int32_t>(members.size()),
                                   static_cast<int32_t>(mine - members.begin()), self_->options());
  if (!part) return tl::unexpected(part.error());
  return std::make_unique<Communicator>(std::move(*part));
}

Result<std::string> Communicator::ScheduleFor(CollectiveKind kind, int64_t count, DataType type) {
  const CollectiveCall call{.kind = kind, .count = count, .type = type};
  if (num_ranks() == 1) return "copy";
  if (self_->UsesBoard(call)) return "shared board";
  const Result<const PlannedSchedule*> planned = self_->Choose(call);
  if (!planned) return tl::unexpected(planned.error());
  return *planned == nullptr ? "direct messages" : (*planned)->name;
}

}  // namespace tutti

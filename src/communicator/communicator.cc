#include "tutti/communicator.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "bootstrap.h"
#include "lanes.h"
#include "operation.h"
#include "schedules.h"
#include "tutti/base/deadline.h"
#include "tutti/base/file.h"
#include "tutti/base/hash.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

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

std::string TextOf(std::string_view what, int64_t count, DataType type,
                   std::optional<ReduceOp> op = std::nullopt,
                   std::optional<int32_t> root = std::nullopt) {
  std::string text = fmt::format("{} of {} {}", what, count, Name(type));
  if (op) text += fmt::format(" ({})", Name(*op));
  if (root) text += fmt::format(" with root {}", *root);
  return text;
}

const std::byte* At(const void* base, int64_t bytes) {
  return static_cast<const std::byte*>(base) + bytes;
}
std::byte* At(void* base, int64_t bytes) { return static_cast<std::byte*>(base) + bytes; }

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
  bootstrap::Link& link() { return *link_; }
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

  struct Call {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    const void* input = nullptr;
    void* output = nullptr;
    int64_t count = 0;  // as NCCL counts
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    int32_t root = 0;
  };
  Status Run(const Call& call);
  Status Exchange(std::span<const Message> messages, const std::string& text);
  Result<const PlannedSchedule*> Choose(const Call& call);
  Result<std::vector<std::string>> Share(const std::string& mine, const std::string& text);
  // Of what the caller gives. An error leaves the communicator as it was.
  Status CheckRank(int32_t rank, const char* what) const {
    if (rank >= 0 && rank < num_ranks_) return {};
    return InvalidArgument(
        fmt::format("{} {}: there are ranks 0 to {}", what, rank, num_ranks_ - 1));
  }

 private:
  using PlanKey = std::pair<const PlannedSchedule*, PlanCall>;
  struct Kept {
    PlanKey key;
    std::unique_ptr<PlanOperation> operation;
  };
  static constexpr size_t kMostKept = 64;

  Rank(int32_t num_ranks, int32_t rank, const CommunicatorOptions& options)
      : num_ranks_(num_ranks), rank_(rank), options_(options) {}

  Status Meet(const UniqueId& id);
  bool IsInPlace(const Call& call) const;
  // Elements of M.
  int64_t Elements(const Call& call) const;
  bool IsPerRank(CollectiveKind kind) const {
    return kind != CollectiveKind::kAllReduce && kind != CollectiveKind::kBroadcast &&
           kind != CollectiveKind::kReduce;
  }
  std::string Text(const Call& call) const;
  Status Check(const Call& call) const;
  Status RunPlan(const PlannedSchedule& planned, const Call& call);
  // Block by block, without a plan.
  Status RunDirectly(const Call& call);
  Status ExchangeNow(std::span<const Message> messages, const std::string& text);
  Result<PlanOperation*> OperationFor(const PlannedSchedule& planned, const PlanCall& call);
  // Of the only rank there is.
  static void Copy(const Call& call);
  Status Drive(Operation& operation, const std::string& text);
  // Before anything is sent: not failed, not aborted.
  Status BeHealthy(const std::string& text) {
    if (Status healthy = health(); !healthy) return healthy;
    if (aborted_) return FailBecause(Aborted(), text, 0);
    return {};
  }
  static Error Aborted() { return {ErrorCode::kCancelled, "aborted"}; }
  // `wait_s`: for what other ranks say of it.
  Status FailBecause(const Error& error, const std::string& text, double wait_s);

  int32_t num_ranks_, rank_;
  CommunicatorOptions options_;
  std::mutex running_;  // held while an operation runs
  std::atomic<bool> aborted_ = false;
  mutable std::mutex fault_mutex_;
  std::optional<Error> fault_;
  std::optional<ScheduleBook> book_;
  std::optional<bootstrap::Link> link_;
  std::list<Kept> kept_;  // the one used last first
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
  const std::string mine = WordsToBytes(
      {int64_t{own.address}, int64_t{own.port}, static_cast<int64_t>(book_->digest())});
  const Result<std::vector<std::string>> shares = link_->Share(mine, deadline, aborted_);
  if (!shares) return tl::unexpected(link_->Fail(shares.error(), 1));
  std::vector<Endpoint> peers;
  for (size_t peer = 0; peer < shares->size(); ++peer) {
    const auto words = Frame{FrameType::kShare, (*shares)[peer]}.Words(3);
    if (!words)
      return MakeError(ErrorCode::kPeerFailed, fmt::format("rank {} sent nonsense", peer));
    if (static_cast<uint64_t>((*words)[2]) != book_->digest())
      return InvalidArgument(
          fmt::format("the schedule libraries of ranks {} and {} differ", rank_, peer));
    peers.push_back({static_cast<uint32_t>((*words)[0]), static_cast<uint16_t>((*words)[1])});
  }
  lanes_ = std::make_unique<Lanes>(std::move(*transport), std::move(peers));
  return {};
}

// --- Running -------------------------------------------------------------------------------------

Status Communicator::Rank::FailBecause(const Error& error, const std::string& text, double wait_s) {
  const Error all =
      link_->Fail({error.code, fmt::format("in {}: {}", text, error.message)}, wait_s);
  lanes_->transport().Break();
  const std::lock_guard lock(fault_mutex_);
  fault_ = all;
  return tl::unexpected(all);
}

Status Communicator::Rank::Drive(Operation& operation, const std::string& text) {
  constexpr int64_t kBudget = int64_t{256} << 10;
  constexpr std::chrono::milliseconds kCheck{1};
  constexpr double kOthersSay_s = 1;
  TcpTransport& transport = lanes_->transport();
  const Deadline deadline(options_.timeout_s);
  Clock::time_point next_check = Clock::now() + kCheck;
  for (int stuck = 0;;) {
    const Interpreter::Outcome outcome = operation.Poll(kBudget);
    if (outcome == Interpreter::Outcome::kOver) {
      transport.Poll(0);  // the last acknowledgements
      return {};
    }
    stuck = outcome == Interpreter::Outcome::kMoved ? 0 : stuck + 1;
    if (stuck > 1) operation.SaveWanted();
    if (transport.Poll(stuck > 2 ? 1 : 0)) stuck = 0;
    if (const Status health = operation.health(); !health)
      return FailBecause(health.error(), text, kOthersSay_s);
    if (stuck == 0 || Clock::now() < next_check) continue;
    next_check = Clock::now() + kCheck;
    if (aborted_) return FailBecause(Aborted(), text, 0);
    if (const Status others = link_->Check(); !others) return FailBecause(others.error(), text, 0);
    if (deadline.HasPassed())
      return FailBecause(
          {ErrorCode::kPeerFailed, fmt::format("it did not end within {} s", options_.timeout_s)},
          text, 0);
  }
}

int64_t Communicator::Rank::Elements(const Call& call) const {
  return IsPerRank(call.kind) ? call.count * num_ranks_ : call.count;
}

std::string Communicator::Rank::Text(const Call& call) const {
  const bool rooted = call.kind == CollectiveKind::kBroadcast ||
                      call.kind == CollectiveKind::kReduce ||
                      call.kind == CollectiveKind::kGather || call.kind == CollectiveKind::kScatter;
  return TextOf(Name(call.kind), call.count, call.type,
                Reduces(call.kind) ? std::optional(call.op) : std::nullopt,
                rooted ? std::optional(call.root) : std::nullopt);
}

Status Communicator::Rank::Check(const Call& call) const {
  constexpr int64_t kMostElements = int64_t{1} << 56;
  if (call.count < 0 || call.count > kMostElements / num_ranks_)
    return InvalidArgument(fmt::format("a count of {}", call.count));
  if (const Status root = CheckRank(call.root, "root"); !root) return root;
  const bool reads =
      call.kind != CollectiveKind::kBroadcast && call.kind != CollectiveKind::kScatter;
  const bool writes = call.kind != CollectiveKind::kReduce && call.kind != CollectiveKind::kGather;
  if (call.count > 0 && call.input == nullptr && (reads || rank_ == call.root))
    return InvalidArgument(fmt::format("{}: no input", Text(call)));
  if (call.count > 0 && call.output == nullptr && (writes || rank_ == call.root))
    return InvalidArgument(fmt::format("{}: no output", Text(call)));
  return {};
}

bool Communicator::Rank::IsInPlace(const Call& call) const {
  const int64_t block = call.count * SizeOf(call.type) * rank_;
  switch (call.kind) {
    case CollectiveKind::kAllGather:
      return call.input == At(call.output, block);
    case CollectiveKind::kReduceScatter:
      return call.output == At(call.input, block);
    case CollectiveKind::kGather:
      return rank_ == call.root && call.input == At(call.output, block);
    case CollectiveKind::kScatter:
      return rank_ == call.root && call.output == At(call.input, block);
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV:
      return false;
    default:
      return call.input == call.output;
  }
}

void Communicator::Rank::Copy(const Call& call) {
  if (call.input != call.output && call.count > 0)
    std::memmove(call.output, call.input, static_cast<size_t>(call.count * SizeOf(call.type)));
}

Result<const PlannedSchedule*> Communicator::Rank::Choose(const Call& call) {
  return book_->Choose(call.kind, call.root, Elements(call) * SizeOf(call.type));
}

Status Communicator::Rank::Run(const Call& call) {
  const std::lock_guard running(running_);
  if (Status checked = Check(call); !checked) return checked;
  if (Status healthy = BeHealthy(Text(call)); !healthy) return healthy;
  if (num_ranks_ == 1) {
    Copy(call);
    return {};
  }
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

Status Communicator::Rank::RunPlan(const PlannedSchedule& planned, const Call& call) {
  const Result<PlanOperation*> operation = OperationFor(
      planned,
      {.count = Elements(call), .type = call.type, .op = call.op, .in_place = IsInPlace(call)});
  if (!operation) return tl::unexpected(operation.error());
  const auto scratch = static_cast<size_t>((*operation)->scratch_bytes());
  if (scratch_.size() < scratch) scratch_.resize(scratch);
  const std::string text = Text(call);
  Fnv1a signature;
  signature.AddBytes(text);
  signature.AddWord(static_cast<int64_t>(planned.digest));
  lanes_->transport().SetSignature(signature.value());
  (*operation)->Begin(call.input, call.output, scratch_.data());
  return Drive(**operation, text);
}

Status Communicator::Rank::RunDirectly(const Call& call) {
  const int64_t block = call.count * SizeOf(call.type);
  std::vector<Message> messages;
  const bool is_root = rank_ == call.root;
  for (int32_t i = 0; i < num_ranks_; ++i) {
    // Not everybody to rank 0 first.
    const int32_t to = (rank_ + i) % num_ranks_, from = (rank_ + num_ranks_ - i) % num_ranks_;
    if (call.kind == CollectiveKind::kAllToAll ||
        (call.kind == CollectiveKind::kScatter ? is_root : to == call.root))
      messages.push_back(
          Send(to, At(call.input, call.kind == CollectiveKind::kGather ? 0 : block * to), block));
    if (call.kind == CollectiveKind::kAllToAll ||
        (call.kind == CollectiveKind::kGather ? is_root : from == call.root))
      messages.push_back(Receive(
          from, At(call.output, call.kind == CollectiveKind::kScatter ? 0 : block * from), block));
  }
  return ExchangeNow(messages, Text(call));
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
  return Drive(operation, text);
}

Result<std::vector<std::string>> Communicator::Rank::Share(const std::string& mine,
                                                           const std::string& text) {
  const std::lock_guard running(running_);
  if (Status healthy = BeHealthy(text); !healthy) return tl::unexpected(healthy.error());
  Result<std::vector<std::string>> shares =
      link_->Share(mine, Deadline(options_.timeout_s), aborted_);
  if (!shares) return tl::unexpected(FailBecause(shares.error(), text, 0).error());
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
    messages.push_back(
        Send(static_cast<int32_t>(to), At(input, send_offsets[to] * size), send_counts[to] * size));
    messages.push_back(Receive(static_cast<int32_t>(from), At(output, receive_offsets[from] * size),
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
  const Result<const PlannedSchedule*> planned =
      self_->Choose({.kind = kind, .count = count, .type = type});
  if (!planned) return tl::unexpected(planned.error());
  return *planned == nullptr ? "direct messages" : (*planned)->name;
}

}  // namespace tutti

#include "tutti/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "bootstrap.h"
#include "rank.h"
#include "regroup.h"
#include "service_client.h"
#include "tutti/base/deadline.h"
#include "tutti/base/file.h"

namespace tutti {
namespace {

// Those of this host that $TUTTI_HOST names, else that of the first interface that is up and leads
// to other hosts, else of the loopback interface.
Result<std::vector<IpAddress>> ListenAddresses() {
  const char* host = std::getenv("TUTTI_HOST");
  if (host == nullptr || *host == '\0') return std::vector<IpAddress>{FirstAddress()};
  Result<std::vector<IpAddress>> addresses = AddressesOf(host);
  if (!addresses) return InvalidArgument("TUTTI_HOST: " + addresses.error().message);
  return addresses;
}

}  // namespace

Result<UniqueId> MakeUniqueId(const std::string& service) {
  const std::string socket = ServiceSocket(service);
  if (!socket.empty()) return MakeServiceId(socket);
  const Result<std::vector<IpAddress>> addresses = ListenAddresses();
  if (!addresses) return tl::unexpected(addresses.error());
  // Some addresses of a name may be another host's, or of a version that this host does not have.
  Error why;
  for (const IpAddress& at : *addresses) {
    const Result<bootstrap::Address> root = bootstrap::StartRoot(at);
    if (root) return bootstrap::Encode(*root);
    why = root.error();
  }
  return tl::unexpected(why);
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

// --- Communicator --------------------------------------------------------------------------------

Communicator::Communicator(std::unique_ptr<Rank> self) : self_(std::move(self)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

void Communicator::Rank::Copy(const CollectiveCall& call) {
  CopyBlock(call.output, call.input, call.block_bytes());
}

Result<Communicator> Communicator::Join(const UniqueId& id, int32_t num_ranks, int32_t rank,
                                        const CommunicatorOptions& options) {
  if (num_ranks < 1 || rank < 0 || rank >= num_ranks)
    return InvalidArgument(fmt::format("rank {} of {} cannot be", rank, num_ranks));
  const std::string socket = ServiceSocket(options.service);
  if (!socket.empty() && options.fixed_order)
    return InvalidArgument("a fixed order of reductions is for ranks without a service");
  Result<std::unique_ptr<Rank>> self = socket.empty()
                                           ? JoinInProcess(id, num_ranks, rank, options)
                                           : JoinService(socket, id, num_ranks, rank, options);
  if (!self) return Within(fmt::format("rank {} of {} joins", rank, num_ranks), self.error());
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
    messages.push_back(SendOf(static_cast<int32_t>(to), Advanced(input, send_offsets[to] * size),
                              send_counts[to] * size));
    messages.push_back(ReceiveOf(static_cast<int32_t>(from),
                                 Advanced(output, receive_offsets[from] * size),
                                 receive_counts[from] * size));
  }
  return self_->Exchange(messages, fmt::format("all-to-all-v of {}", Name(type)));
}

Status Communicator::Exchange(std::span<const Message> messages) {
  return self_->Exchange(messages, Rank::kMessages);
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
    const Result<UniqueId> id = self_->MakeId();
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

// --- Fewer ranks, and more -----------------------------------------------------------------------

Result<std::unique_ptr<Communicator>> Communicator::Again(const RegroupAsk& ask) {
  const Deadline deadline(self_->options().timeout_s);
  while (true) {
    const Result<Regrouped> regrouped = self_->Regroup(ask, deadline);
    if (!regrouped) return Within(fmt::format("rank {} {}", rank(), ask.Text()), regrouped.error());
    Result<std::unique_ptr<Rank>> joined = self_->JoinAgain(*regrouped);
    if (joined) return std::unique_ptr<Communicator>(new Communicator(std::move(*joined)));
    // Somebody has ended meanwhile. Who was to join by the id of a grow cannot try again.
    if (joined.error().code != ErrorCode::kPeerFailed || ask.grows_to > 0 || deadline.HasPassed())
      return Within(fmt::format("rank {} {}", rank(), ask.Text()), joined.error());
  }
}

Result<std::unique_ptr<Communicator>> Communicator::Shrink(std::span<const int32_t> excluded) {
  RegroupAsk ask{.excluded = {excluded.begin(), excluded.end()}};
  std::sort(ask.excluded.begin(), ask.excluded.end());
  ask.excluded.erase(std::unique(ask.excluded.begin(), ask.excluded.end()), ask.excluded.end());
  if (ask.excluded.size() > RegroupAsk::kMaxExcluded)
    return InvalidArgument(
        fmt::format("{} ranks to be left out by name: at most {}; those that have ended "
                    "need no name",
                    ask.excluded.size(), RegroupAsk::kMaxExcluded));
  for (const int32_t out : ask.excluded) {
    if (out < 0 || out >= num_ranks())
      return InvalidArgument(fmt::format("rank {} to be left out: there are {}", out, num_ranks()));
    if (out == rank())
      return InvalidArgument(fmt::format("rank {} leaves itself out; it need not call", out));
  }
  return Again(ask);
}

Result<UniqueId> Communicator::MakeGrowId() const { return self_->MakeId(); }

Result<std::unique_ptr<Communicator>> Communicator::Grow(int32_t num_ranks, const UniqueId* id) {
  if (num_ranks < 1)
    return InvalidArgument(fmt::format("{} ranks cannot grow to {}", this->num_ranks(), num_ranks));
  const RegroupAsk ask{.grows_to = num_ranks,
                       .id = id != nullptr ? std::optional(*id) : std::nullopt};
  if (!self_->health()) return Again(ask);
  const auto shares = self_->Share(Encode(ask), "a grow");
  if (!shares) return self_->health() ? tl::unexpected(shares.error()) : Again(ask);
  Roll roll(this->num_ranks());
  for (size_t rank = 0; rank < shares->size(); ++rank) {
    const auto said = DecodeAsk((*shares)[rank]);
    if (!said)
      return MakeError(ErrorCode::kPeerFailed,
                       fmt::format("rank {} does not grow, as rank {} does", rank, this->rank()));
    if (const Status entered = roll.Enter(static_cast<int32_t>(rank), *said); !entered)
      return tl::unexpected(entered.error());
  }
  const Result<Regrouped> become = roll.BecomeOf(static_cast<size_t>(rank()), std::nullopt);
  if (!become) return tl::unexpected(become.error());
  Result<std::unique_ptr<Rank>> joined = self_->JoinAgain(*become);
  if (!joined) return Within(fmt::format("rank {} {}", rank(), ask.Text()), joined.error());
  return std::unique_ptr<Communicator>(new Communicator(std::move(*joined)));
}

Result<std::string> Communicator::ScheduleFor(CollectiveKind kind, int64_t count, DataType type) {
  return self_->ScheduleFor({.kind = kind, .count = count, .type = type});
}

}  // namespace tutti

#include "epoch.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "gateway.h"

namespace tutti::service {

class Epoch::RankLanes final : public LaneSource {
 public:
  RankLanes(Epoch& epoch, size_t local, TcpTransport* transport)
      : epoch_(epoch), rank_(epoch.options_.local_ranks[local]), transport_(transport) {}

  Lane& To(int32_t peer, int32_t channel) override {
    Lane& lane = to_[{peer, channel}];
    if (lane.connection != nullptr) return lane;
    ++epoch_.num_connections_;
    lane.connection = epoch_.LocalIndex(peer) >= 0
                          ? &epoch_.Between(rank_, peer, channel)
                          : epoch_.SendTo(*transport_, rank_, peer, channel);
    return lane;
  }
  Lane& From(int32_t peer, int32_t channel) override {
    Lane& lane = from_[{peer, channel}];
    if (lane.connection == nullptr)
      lane.connection = epoch_.LocalIndex(peer) >= 0 ? &epoch_.Between(peer, rank_, channel)
                                                     : transport_->ReceiveFrom(peer, channel);
    return lane;
  }
  void SetSignature(uint64_t signature) override {
    signature_ = signature;
    if (transport_ != nullptr) transport_->SetSignature(signature);
  }
  const uint64_t& signature() const { return signature_; }
  bool is_quiet() const {
    return std::all_of(to_.begin(), to_.end(), [](const auto& entry) {
      const Lane& lane = entry.second;
      return lane.connection == nullptr || lane.connection->released() == lane.posted;
    });
  }

 private:
  using Key = std::pair<int32_t, int32_t>;  // peer, channel

  Epoch& epoch_;
  int32_t rank_;
  TcpTransport* transport_;  // null: all ranks are here
  uint64_t signature_ = 0;
  std::map<Key, Lane> to_, from_;  // addresses stay
};

Epoch::Epoch(EventLoop& loop, std::shared_ptr<Strategy> strategy, const EpochOptions& options)
    : loop_(loop),
      strategy_(std::move(strategy)),
      options_(options),
      scratch_(options.local_ranks.size()) {}

Epoch::~Epoch() {
  // Operations end before what they are connected to.
  kept_.clear();
  for (const auto& transport : transports_) loop_.Remove(transport->poll_fd());
  for (const Endpoint& made : of_gateway_) loop_.gateway()->Close(made);
}

Result<std::unique_ptr<Epoch>> Epoch::Open(EventLoop& loop, std::shared_ptr<Strategy> strategy,
                                           const EpochOptions& options) {
  std::unique_ptr<Epoch> epoch(new Epoch(loop, std::move(strategy), options));
  if (!epoch->one_host())
    if (Status listening = epoch->Listen(); !listening) return tl::unexpected(listening.error());
  for (size_t local = 0; local < options.local_ranks.size(); ++local)
    epoch->lanes_.push_back(std::make_unique<RankLanes>(
        *epoch, local, epoch->transports_.empty() ? nullptr : epoch->transports_[local].get()));
  return epoch;
}

Status Epoch::Listen() {
  TcpOptions tcp;
  tcp.communicator = options_.communicator;
  tcp.epoch = options_.number;
  tcp.cookie = options_.cookie;
  // A tenant may come to an operation long after the others; that daemons are there their links say.
  constexpr double kLong = 1e9;
  tcp.patience_s = kLong;
  tcp.max_failures = kMostFailures;
  for (size_t local = 0; local < options_.local_ranks.size(); ++local) {
    // Flows may lead to any address of this host.
    tcp.address = strategy_->flows().empty() ? options_.addresses[local] : INADDR_ANY;
    if (options_.leaves_from_addresses) tcp.source.address = options_.addresses[local];
    Gateway* gateway = loop_.gateway();
    if (gateway != nullptr) tcp.address = INADDR_LOOPBACK, tcp.source = {};
    if (options_.on_lost)
      tcp.on_lost = [this, from = options_.local_ranks[local]](const LostWay& way) {
        options_.on_lost(from, way);
      };
    tcp.is_suspect = options_.is_suspect;
    if (options_.path_bytes != nullptr)
      tcp.counter_of = [this](const TcpPorts& ports) { return &options_.path_bytes->Of(ports); };
    Result<std::unique_ptr<TcpTransport>> transport =
        TcpTransport::Listen(options_.local_ranks[local], tcp);
    if (!transport) return tl::unexpected(transport.error());
    if (gateway != nullptr) {
      // Flows may lead to any address of this host here, too.
      const uint32_t address =
          strategy_->flows().empty() ? options_.addresses[local] : uint32_t{INADDR_ANY};
      const Result<Endpoint> front = gateway->Front({address, 0}, (*transport)->endpoint());
      if (!front) return tl::unexpected(front.error());
      of_gateway_.push_back(*front);
    }
    TcpTransport* polled = transport->get();
    loop_.Add(polled->poll_fd(), EPOLLIN, [polled](uint32_t) { polled->Poll(0); });
    transports_.push_back(std::move(*transport));
  }
  return {};
}

Endpoint Epoch::endpoint(size_t local) const {
  if (transports_.empty()) return {};
  // Fronts come first, in the order of ranks.
  const uint16_t port =
      of_gateway_.empty() ? transports_[local]->endpoint().port : of_gateway_[local].port;
  return {options_.addresses[local], port};
}

Connection* Epoch::SendTo(TcpTransport& transport, int32_t from, int32_t to, int32_t channel) {
  Endpoint target = peers_[static_cast<size_t>(to)];
  const FlowPath* path = strategy_->flows().Find(from, to, channel);
  if (path != nullptr && path->target != INADDR_ANY) target.address = path->target;
  if (Gateway* gateway = loop_.gateway(); gateway != nullptr) {
    TcpSource source;
    if (options_.leaves_from_addresses)
      source.address = options_.addresses[static_cast<size_t>(LocalIndex(from))];
    const Result<Endpoint> through =
        gateway->Through(target, path == nullptr ? source : path->source);
    if (through) of_gateway_.push_back(target = *through);
    return transport.SendTo(to, target, channel);
  }
  if (path == nullptr) return transport.SendTo(to, target, channel);
  return transport.SendTo(to, target, channel, path->source);
}

int32_t Epoch::LocalIndex(int32_t rank) const {
  const auto& all = options_.local_ranks;
  const auto found = std::lower_bound(all.begin(), all.end(), rank);
  return found != all.end() && *found == rank ? static_cast<int32_t>(found - all.begin()) : -1;
}

LocalConnection& Epoch::Between(int32_t from, int32_t to, int32_t channel) {
  std::unique_ptr<LocalConnection>& connection = between_[{from, to, channel}];
  if (connection == nullptr) {
    const auto signature = [this](int32_t rank) -> const uint64_t& {
      return lanes_[static_cast<size_t>(LocalIndex(rank))]->signature();
    };
    connection = std::make_unique<LocalConnection>(
        fmt::format("connection {} -> {} channel {}", from, to, channel), signature(from),
        signature(to), options_.helpers);
  }
  return *connection;
}

LaneSource& Epoch::lanes(size_t local) { return *lanes_[local]; }

std::byte* Epoch::Scratch(size_t local, int64_t bytes) {
  std::vector<std::byte>& scratch = scratch_[local];
  if (scratch.size() < static_cast<size_t>(bytes)) scratch.resize(static_cast<size_t>(bytes));
  return scratch.data();
}

bool Epoch::is_quiet() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lanes) { return lanes->is_quiet(); });
}

bool Epoch::PollSockets(size_t local) {
  return !transports_.empty() && transports_[local]->Poll(0);
}

Result<std::shared_ptr<PlanOperation>> Epoch::OperationFor(size_t local,
                                                           const PlannedSchedule& planned,
                                                           const PlanCall& call) {
  const std::pair key(&planned, call);
  auto found = std::find_if(kept_.begin(), kept_.end(),
                            [&key](const Kept& kept) { return kept.key == key; });
  if (found == kept_.end()) {
    auto program = PlanProgram::Make(planned.plan, call);
    if (!program) return tl::unexpected(program.error());
    kept_.push_front({key, std::move(*program), {}});
    kept_.front().operations.resize(options_.local_ranks.size());
    if (kept_.size() > kMaxKept) kept_.pop_back();
    found = kept_.begin();
  } else {
    kept_.splice(kept_.begin(), kept_, found);
  }
  std::shared_ptr<PlanOperation>& operation = found->operations[local];
  if (operation == nullptr)
    operation = std::make_shared<PlanOperation>(found->program, options_.local_ranks[local],
                                                *lanes_[local]);
  return operation;
}

}  // namespace tutti::service

#include "session.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "futex.h"
#include "memory_limits.h"
#include "tutti/base/hash.h"
#include "tutti/runtime/remote.h"

namespace tutti {
namespace {

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void Bell::Wake(WaitsFor at_least) {
  if (state_->waiting.load() < at_least) return;
  if (state_->waiting.exchange(WaitsFor::kNo) == WaitsFor::kNo) return;
  state_->bell.fetch_add(1);
  FutexWakeAll(state_->bell);
}

Session::Session(const Plan& plan, const RunOptions& options, const Tuning& tuning, Layout layout,
                 Program program)
    : plan_(&plan),
      options_(options),
      tuning_(tuning),
      layout_(std::move(layout)),
      program_(std::move(program)),
      pattern_(std::make_unique<Pattern>(
          options.type, options.op, plan.collective.reduces(), plan.collective.num_ranks(),
          plan.collective.groups(),
          options.fixed_order ? Pattern::Values::kRough : Pattern::Values::kExact)) {
  crowded_ = static_cast<unsigned>(num_ranks()) > std::thread::hardware_concurrency();
}

Result<Session> Session::MakeIdle(const Plan& plan, const RunOptions& options, const Tuning& tuning,
                                  std::optional<int32_t> only) {
  if (options.iterations < 1 || options.warmup < 0 || options.warmup > 1'000'000'000 ||
      options.iterations > 1'000'000'000)
    return InvalidArgument(
        fmt::format("a run needs 0 to 10^9 iterations to warm up and 1 to 10^9 to measure, got {} "
                    "and {}",
                    options.warmup, options.iterations));
  if (plan.collective.has_groups() && plan.collective.reduces() && options.op == ReduceOp::kAvg)
    return InvalidArgument("groups are not averaged; take sum and divide by the size of the group");
  Result<Layout> layout = Layout::Make(plan, options, only);
  if (!layout) return tl::unexpected(layout.error());
  Result<Program> program = MakeProgram(plan, *layout, tuning.piece_bytes,
                                        options.fixed_order ? TilesOf::kUnits : TilesOf::kSlots);
  if (!program) return tl::unexpected(program.error());
  Session session(plan, options, tuning, std::move(*layout), std::move(*program));
  Result<SharedMemory> memory = SharedMemory::Map(session.Arrange());
  if (!memory) return tl::unexpected(memory.error());
  session.memory_ = std::move(*memory);
  session.Construct();
  return session;
}

Result<Session> Session::Make(const Plan& plan, const RunOptions& options, const Tuning& tuning) {
  if (options.transport == Transport::kMpi)
    return InvalidArgument("transport mpi is for ranks that mpirun started");
  Result<Session> session = MakeIdle(plan, options, tuning, std::nullopt);
  if (session && options.transport == Transport::kTcp)
    if (const Status listening = session->Listen(); !listening)
      return tl::unexpected(listening.error());
  return session;
}

Result<Session> Session::MakeForRank(const Plan& plan, const RunOptions& options,
                                     const Tuning& tuning, int32_t rank,
                                     const MakeTransport& make) {
  Result<Session> session = MakeIdle(plan, options, tuning, rank);
  if (!session) return session;
  Result<std::unique_ptr<PeerTransport>> transport = make(session->CallSignature());
  if (!transport) return tl::unexpected(transport.error());
  session->transports_.resize(session->program_.ranks.size());
  session->transports_[static_cast<size_t>(rank)] = std::move(*transport);
  return session;
}

int64_t Session::Arrange() {
  int64_t end = 0;
  const auto take = [&end](int64_t bytes, int64_t alignment) {
    const int64_t at = RoundUp(end, alignment);
    end = at + bytes;
    return at;
  };
  const int64_t ranks = num_ranks();
  control_at_ = take(sizeof(ControlState), kPage);
  ranks_at_ = take(ranks * static_cast<int64_t>(sizeof(RankState)), kPage);
  connections_at_ =
      take(static_cast<int64_t>(program_.connections.size() * sizeof(ConnectionState)), kPage);
  int64_t num_events = 0;
  for (const RankProgram& rank : program_.ranks) {
    executed_first_.push_back(num_executed_);
    events_first_.push_back(num_events);
    num_executed_ += RoundUp(static_cast<int64_t>(rank.streams.size()), 8);
    num_events += static_cast<int64_t>(rank.steps.size()) * program_.tiles;
  }
  executed_at_ = take(num_executed_ * 8, kPage);
  if (options_.record_trace)
    events_at_ = take(num_events * static_cast<int64_t>(sizeof(RunEvent)), kPage);
  // Else senders save messages in memory of their own.
  const bool bounces = options_.transport == Transport::kShared;
  for (const ConnectionProgram& connection : program_.connections)
    bounce_at_.push_back(
        take(bounces ? connection.largest_message * static_cast<int64_t>(kBounces) : 0, 64));
  data_at_ = take(layout_.total_bytes(), kPage);
  return end;
}

// New pages are zero; the constructors make them objects all the same.
void Session::Construct() {
  new (At<ControlState>(control_at_)) ControlState();
  for (int32_t r = 0; r < num_ranks(); ++r) new (&rank(r)) RankState();
  for (size_t c = 0; c < program_.connections.size(); ++c)
    new (At<ConnectionState>(connections_at_) + c) ConnectionState();
  for (int64_t i = 0; i < num_executed_; ++i)
    new (At<std::atomic<uint64_t>>(executed_at_) + i) std::atomic<uint64_t>(0);
  for (int32_t r = 0; r < num_ranks(); ++r) {
    bells_.emplace_back(rank(r));
    Binding& binding = bindings_.emplace_back();
    for (const Buffer buffer : {Buffer::kInput, Buffer::kOutput, Buffer::kScratch})
      binding.base[static_cast<size_t>(buffer)] = data() + layout_.BufferOffset(r, buffer);
  }
}

uint64_t Session::CallSignature() const {
  Fnv1a call;
  call.AddBytes(PlanToText(*plan_));
  for (const int64_t word :
       {int64_t{static_cast<int>(options_.type)}, int64_t{static_cast<int>(options_.op)},
        int64_t{options_.fixed_order}, options_.size_bytes})
    call.AddWord(word);
  return call.value();
}

Status Session::Listen() {
  const TcpOptions tcp{.cookie = DrawSecret(), .signature = CallSignature(), .patience_s = 10};
  std::vector<std::unique_ptr<TcpTransport>> listening;
  std::vector<Endpoint> endpoints;
  for (int32_t rank = 0; rank < num_ranks(); ++rank) {
    Result<std::unique_ptr<TcpTransport>> transport = TcpTransport::Listen(rank, tcp);
    if (!transport) return tl::unexpected(transport.error());
    endpoints.push_back((*transport)->endpoint());
    listening.push_back(std::move(*transport));
  }
  for (std::unique_ptr<TcpTransport>& transport : listening) {
    transport->SetPeers(endpoints);
    transports_.push_back(std::move(transport));
  }
  return {};
}

void Session::NoteFault(int32_t rank, const Error& error) const {
  std::array<char, 256>& fault = this->rank(rank).fault;
  const size_t length = std::min(error.message.size(), fault.size() - 1);
  std::copy_n(error.message.begin(), length, fault.begin());
}

SharedChannel Session::ChannelOf(int32_t connection) const {
  const auto c = static_cast<size_t>(connection);
  const ConnectionProgram& program = program_.connections[c];
  return {.state = At<ConnectionState>(connections_at_) + connection,
          .bounces = memory_.data() + bounce_at_[c],
          .largest_message = program.largest_message,
          .program = &program_,
          .sender = program.sender,
          .sender_stream = program.sender_stream,
          .sender_binding = &binding(program.sender),
          .wake_sender = &bell(program.sender),
          .wake_receiver = &bell(program.receiver)};
}

}  // namespace tutti

#include "session.h"

#include <fmt/format.h>
#include <time.h>

#include <new>
#include <thread>
#include <utility>

namespace tutti {
namespace {

constexpr int64_t kPage = 4096;

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Session::Session(const Plan& plan, const RunOptions& options, const Tuning& tuning, Layout layout,
                 Program program)
    : plan_(&plan),
      options_(options),
      tuning_(tuning),
      layout_(std::move(layout)),
      program_(std::move(program)),
      pattern_(std::make_unique<Pattern>(options.type, options.op, plan.collective.reduces(),
                                         plan.collective.num_ranks())) {
  crowded_ = static_cast<unsigned>(num_ranks()) > std::thread::hardware_concurrency();
}

Result<Session> Session::Make(const Plan& plan, const RunOptions& options, const Tuning& tuning) {
  if (options.iterations < 1 || options.warmup < 0 || options.warmup > 1'000'000'000 ||
      options.iterations > 1'000'000'000)
    return InvalidArgument(
        fmt::format("a run needs 0 to 10^9 iterations to warm up and 1 to 10^9 to measure, got {} "
                    "and {}",
                    options.warmup, options.iterations));
  Result<Layout> layout = Layout::Make(plan, options);
  if (!layout) return tl::unexpected(layout.error());
  Result<Program> program = MakeProgram(plan, *layout, tuning.piece_bytes);
  if (!program) return tl::unexpected(program.error());
  Session session(plan, options, tuning, std::move(*layout), std::move(*program));
  Result<SharedMemory> memory = SharedMemory::Map(session.Arrange());
  if (!memory) return tl::unexpected(memory.error());
  session.memory_ = std::move(*memory);
  session.Construct();
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
  for (const ConnectionProgram& connection : program_.connections)
    bounce_at_.push_back(take(connection.largest_message * static_cast<int64_t>(kBounces), 64));
  data_at_ = take(layout_.total_bytes(), kPage);
  return end;
}

// New pages are zero; the constructors make them objects all the same.
void Session::Construct() {
  new (At<ControlState>(control_at_)) ControlState();
  for (int32_t r = 0; r < num_ranks(); ++r) new (&rank(r)) RankState();
  for (size_t c = 0; c < program_.connections.size(); ++c)
    new (&connection(static_cast<int32_t>(c))) ConnectionState();
  for (int64_t i = 0; i < num_executed_; ++i)
    new (At<std::atomic<uint64_t>>(executed_at_) + i) std::atomic<uint64_t>(0);
}

}  // namespace tutti

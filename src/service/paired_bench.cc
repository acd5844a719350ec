#include "tutti/service/paired_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include "tutti/base/estimate.h"
#include "tutti/tutti.h"

namespace tutti::service {
namespace {

using Clock = std::chrono::steady_clock;

// One rank's communicators: under the service and, to compare, without it.
struct Pair {
  std::optional<Communicator> service, in_process;
};

constexpr double kBatch_s = 0.05;

// Elements of one rank's part of the call, at least one.
int64_t CountOf(const PairedBenchOptions& options, int64_t bytes) {
  const auto elements = bytes / static_cast<int64_t>(sizeof(float));
  const int64_t parts = options.collective == CollectiveKind::kAllReduce ? 1 : options.ranks;
  return std::max<int64_t>(1, elements / parts);
}

int64_t BytesOf(const PairedBenchOptions& options, int64_t count) {
  const int64_t parts = options.collective == CollectiveKind::kAllReduce ? 1 : options.ranks;
  return count * parts * static_cast<int64_t>(sizeof(float));
}

// In place, as most programs call it.
Status Call(CollectiveKind kind, Communicator& ranks, float* data, int64_t count) {
  if (kind == CollectiveKind::kAllReduce)
    return ranks.AllReduce(data, data, count, DataType::kFloat32, ReduceOp::kMax);
  return ranks.AllGather(data + ranks.rank() * count, data, count, DataType::kFloat32);
}

// All ranks make `calls` calls; seconds of one.
Result<double> RunBatch(CollectiveKind kind, Communicator& ranks, float* data, int64_t count,
                        int32_t calls) {
  if (const Status together = ranks.Barrier(); !together) return tl::unexpected(together.error());
  const Clock::time_point begin = Clock::now();
  for (int32_t call = 0; call < calls; ++call)
    if (const Status done = Call(kind, ranks, data, count); !done)
      return tl::unexpected(done.error());
  return std::chrono::duration<double>(Clock::now() - begin).count() / calls;
}

// How many calls make a batch: all ranks have to know the same number.
Result<int32_t> CallsInABatch(CollectiveKind kind, Communicator& ranks, float* data,
                              int64_t count) {
  constexpr int32_t kWarm = 5, kMaxCalls = 10000;
  const Result<double> one = RunBatch(kind, ranks, data, count, kWarm);
  if (!one) return tl::unexpected(one.error());
  int32_t mine = static_cast<int32_t>(std::clamp(kBatch_s / *one, 1.0, double{kMaxCalls}));
  int32_t all = 0;
  if (const Status agreed = ranks.AllReduce(&mine, &all, 1, DataType::kInt32, ReduceOp::kMin);
      !agreed)
    return tl::unexpected(agreed.error());
  return all;
}

Result<PairedBenchRow> Measure(const PairedBenchOptions& options, Pair& pair, float* data,
                               int64_t bytes) {
  const int64_t count = CountOf(options, bytes);
  PairedBenchRow row{.bytes = BytesOf(options, count)};
  std::vector<double> service, in_process;
  const CollectiveKind kind = options.collective;
  const Result<int32_t> calls = CallsInABatch(kind, *pair.service, data, count);
  if (!calls) return tl::unexpected(calls.error());
  if (pair.in_process)
    if (const auto warm = RunBatch(kind, *pair.in_process, data, count, 2); !warm)
      return tl::unexpected(warm.error());
  for (int32_t batch = 0; batch < options.batches; ++batch) {
    const Result<double> seconds = RunBatch(kind, *pair.service, data, count, *calls);
    if (!seconds) return tl::unexpected(seconds.error());
    service.push_back(*seconds);
    if (!pair.in_process) continue;
    const Result<double> alone = RunBatch(kind, *pair.in_process, data, count, *calls);
    if (!alone) return tl::unexpected(alone.error());
    in_process.push_back(*alone);
  }
  row.service_s = MedianOf(service);
  if (pair.in_process) row.in_process_s = MedianOf(in_process);
  return row;
}

Result<Pair> Join(const PairedBenchOptions& options, const UniqueId& in_process, int32_t rank) {
  constexpr double kPatience_s = 60;
  Pair pair;
  Result<Communicator> joined = Communicator::Join(
      options.id, options.ranks, rank, {.timeout_s = kPatience_s, .service = options.socket});
  if (!joined) return tl::unexpected(joined.error());
  pair.service.emplace(std::move(*joined));
  if (options.alone) return pair;
  Result<Communicator> alone = Communicator::Join(in_process, options.ranks, rank,
                                                  {.timeout_s = kPatience_s, .service = "none"});
  if (!alone) return tl::unexpected(alone.error());
  pair.in_process.emplace(std::move(*alone));
  return pair;
}

Result<std::vector<PairedBenchRow>> RunRank(const PairedBenchOptions& options,
                                            const UniqueId& in_process, int32_t rank) {
  Result<Pair> pair = Join(options, in_process, rank);
  if (!pair) return tl::unexpected(pair.error());
  int64_t most = 0;
  for (const int64_t bytes : options.sizes)
    most = std::max(most, BytesOf(options, CountOf(options, bytes)));
  void* data = nullptr;
  if (tuttiMemAlloc(&data, static_cast<size_t>(most)) != tuttiSuccess)
    return MakeError(ErrorCode::kResourceExhausted, tuttiGetLastError(nullptr));
  std::fill_n(static_cast<float*>(data), static_cast<size_t>(most) / sizeof(float), 1.0F);
  std::vector<PairedBenchRow> rows;
  Status failed;
  for (const int64_t bytes : options.sizes) {
    const Result<PairedBenchRow> row = Measure(options, *pair, static_cast<float*>(data), bytes);
    if (!row) {
      failed = tl::unexpected(row.error());
      break;
    }
    rows.push_back(*row);
  }
  tuttiMemFree(data);
  if (!failed) return tl::unexpected(failed.error());
  return rows;
}

}  // namespace

Result<std::vector<PairedBenchRow>> RunPairedBench(const PairedBenchOptions& options) {
  if (options.collective != CollectiveKind::kAllReduce &&
      options.collective != CollectiveKind::kAllGather)
    return InvalidArgument("wanted all-reduce or all-gather");
  if (options.here < 1 || options.first < 0 || options.here > options.ranks - options.first ||
      options.batches < 1 || (options.here < options.ranks && !options.alone))
    return InvalidArgument(
        "wanted ranks that exist, a batch or more, and all ranks here to compare with them alone");
  setenv("TUTTI_SERVICE", options.socket.c_str(), 1);
  const Result<UniqueId> in_process = options.alone ? UniqueId{} : MakeUniqueId("none");
  if (!in_process) return tl::unexpected(in_process.error());
  std::vector<std::optional<Result<std::vector<PairedBenchRow>>>> answers(
      static_cast<size_t>(options.here));
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < options.here; ++i)
    threads.emplace_back([&, i] {
      answers[static_cast<size_t>(i)] = RunRank(options, *in_process, options.first + i);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& answer : answers)
    if (!*answer) return tl::unexpected(answer->error());
  return **answers.front();
}

}  // namespace tutti::service

// All-gather on meshes by `ten` at scale: matching alone, and streamed to a file. Arguments of a
// run: side of the mesh, threads. Counters: ns_a_transfer (wall), rounds, file bytes a transfer.
// Figures to reach: 10,000 ranks in 15 s, 40,000 ranks in 300 s with two threads, at most 4 bytes a
// transfer, two threads 1.7 times as fast as one on 10,000 ranks, growth as ranks^2. Sides over 100
// take minutes: ask for them with --benchmark_filter.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <string>

#include "tutti/base/parallel.h"
#include "tutti/synth/ten.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/stream.h"

namespace tutti {
namespace {

constexpr int64_t kAnyMemory = std::numeric_limits<int64_t>::max();

struct Network {
  Topology topology;
  Collective collective;
};

Network Mesh(int64_t side) {
  Topology topology = *ParseTopology(fmt::format("mesh({},{})", side, side));
  Collective collective = *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
  return {std::move(topology), std::move(collective)};
}

std::string TemporaryPath() {
  return (std::filesystem::temp_directory_path() /
          fmt::format("tutti-ten-bench-{}.sched", ::getpid()))
      .string();
}

class Clock {
 public:
  double ns() const {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

void Run(benchmark::State& state, const Network& network, const OpenSchedule& open) {
  SetNumThreads(static_cast<int>(state.range(1)));
  double ns = 0, transfers = 0;
  for (auto _ : state) {
    const Clock clock;
    const Result<TenStreamed> made =
        StreamTen(network.topology, network.collective, {}, open, kAnyMemory);
    if (!made) return state.SkipWithError(made.error().message.c_str());
    ns += clock.ns();
    transfers += static_cast<double>(made->num_transfers);
    state.counters["rounds"] = made->header.num_steps;
  }
  state.counters["ns_a_transfer"] = ns / transfers;
  SetNumThreads(0);
}

void Match(benchmark::State& state) { Run(state, Mesh(state.range(0)), {}); }

void Write(benchmark::State& state, const Network& network, const std::string& path) {
  Run(state, network, [&](const Schedule& header, int64_t num_transfers) {
    return ScheduleWriter::Open(path, network.topology, header,
                                static_cast<uint64_t>(num_transfers));
  });
}

void Stream(benchmark::State& state) {
  const Network network = Mesh(state.range(0));
  const std::string path = TemporaryPath();
  Write(state, network, path);
  const auto ranks = static_cast<double>(network.topology.num_ranks());
  state.counters["file_bytes_a_transfer"] =
      static_cast<double>(std::filesystem::file_size(path)) / (ranks * (ranks - 1));
  std::filesystem::remove(path);
}

void VerifyFile(benchmark::State& state) {
  const Network network = Mesh(state.range(0));
  const std::string path = TemporaryPath();
  const auto writer = [&](const Schedule& header, int64_t num_transfers) {
    return ScheduleWriter::Open(path, network.topology, header,
                                static_cast<uint64_t>(num_transfers));
  };
  (void)StreamTen(network.topology, network.collective, {}, writer, kAnyMemory);
  SetNumThreads(static_cast<int>(state.range(1)));
  double ns = 0, transfers = 0;
  for (auto _ : state) {
    const Clock clock;
    const auto reader = ScheduleReader::Open(path);
    const Result<VerifyReport> report = VerifyStream(**reader, {}, kAnyMemory);
    if (!report || !report->verified()) return state.SkipWithError("not proven");
    ns += clock.ns();
    transfers += static_cast<double>(report->deliveries);
  }
  state.counters["ns_a_transfer"] = ns / transfers;
  SetNumThreads(0);
  std::filesystem::remove(path);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  for (int64_t side : {8, 16, 32, 64, 100, 200})
    for (int64_t threads : {1, 2}) bench->Args({side, threads});
  bench->Unit(benchmark::kMillisecond)->UseRealTime();
}

BENCHMARK(Match)->Apply(Sizes);
BENCHMARK(Stream)->Apply(Sizes);
BENCHMARK(VerifyFile)->Apply(Sizes);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

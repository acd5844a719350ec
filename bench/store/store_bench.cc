// How fast binary schedule files are written and read, and how small they are. items_per_second
// counts transfers; bytes_per_transfer is the whole file, topology included, by its transfers.
// Figure to reach: at most 4 bytes a transfer. The limit beside it: entropy_bytes, what an ideal
// coder would need for transfers that are drawn at random (random chunks only).
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include "tutti/base/random.h"
#include "tutti/store/store.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

struct Input {
  Topology topology;
  Schedule schedule;
};

Input AllGather(const char* expression) {
  Topology topology = *ParseTopology(expression);
  const Collective collective = *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
  Schedule schedule = *RunSynthesizer(**FindSynthesizer("bfb"), topology, collective, {});
  return {std::move(topology), std::move(schedule)};
}

// Nothing about a transfer can be guessed from the one before: the hardest schedules there are.
constexpr int32_t kChunks = 16, kSteps = 64;
Input RandomChunks(const char* expression, size_t count) {
  Topology topology = *ParseTopology(expression);
  Schedule schedule{*Collective::Make(CollectiveKind::kAllGather, topology.num_ranks())};
  schedule.units_per_shard = kChunks;
  schedule.num_steps = kSteps;
  Random random(1);
  for (size_t i = 0; i < count; ++i) {
    const auto below = [&random](int32_t bound) {
      return static_cast<int32_t>(random.Below(static_cast<uint64_t>(bound)));
    };
    const int32_t begin = below(kChunks);
    const auto step = static_cast<int32_t>(i * kSteps / count);
    schedule.transfers.push_back({ShardId{below(topology.num_ranks())},
                                  LinkId{below(topology.num_links())}, begin, begin + 1, step,
                                  TransferOp::kCopy});
  }
  return {std::move(topology), std::move(schedule)};
}

void SetCounters(benchmark::State& state, const Input& input, size_t file_bytes) {
  const auto transfers = static_cast<double>(input.schedule.transfers.size());
  state.SetItemsProcessed(state.iterations() *
                          static_cast<int64_t>(input.schedule.transfers.size()));
  state.counters["transfers"] = transfers;
  state.counters["bytes_per_transfer"] = static_cast<double>(file_bytes) / transfers;
}

void Write(benchmark::State& state, const Input& input) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("tutti-store-bench-" + std::to_string(::getpid()) + ".sched"))
                               .string();
  for (auto _ : state) {
    const Status written = WriteScheduleFile(path, input.topology, input.schedule);
    if (!written) state.SkipWithError(written.error().message.c_str());
  }
  SetCounters(state, input, std::filesystem::file_size(path));
  std::filesystem::remove(path);
}

void Read(benchmark::State& state, const Input& input) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("tutti-store-bench-" + std::to_string(::getpid()) + ".sched"))
                               .string();
  (void)WriteScheduleFile(path, input.topology, input.schedule);
  for (auto _ : state) {
    const auto reader = ScheduleReader::Open(path);
    std::vector<Transfer> transfers;
    std::vector<int64_t> start_ps;
    while (*(*reader)->Next(transfers, start_ps)) benchmark::DoNotOptimize(transfers.data());
  }
  SetCounters(state, input, std::filesystem::file_size(path));
  std::filesystem::remove(path);
}

void WriteBfb(benchmark::State& state, const char* topology) { Write(state, AllGather(topology)); }
void ReadBfb(benchmark::State& state, const char* topology) { Read(state, AllGather(topology)); }
void WriteRandom(benchmark::State& state, const char* topology) {
  const Input input = RandomChunks(topology, 4'000'000);
  Write(state, input);
  // A set of k equally likely links, shards and chunks a step: log2 of (kinds^k / k!) by k.
  const double each_step = 4'000'000.0 / kSteps;
  const double kinds = static_cast<double>(input.topology.num_links()) *
                       static_cast<double>(input.topology.num_ranks()) * kChunks;
  const double bits = std::log2(kinds) - std::lgamma(each_step + 1) / std::log(2.0) / each_step;
  state.counters["entropy_bytes"] = bits / 8;
}
void ReadRandom(benchmark::State& state, const char* topology) {
  Read(state, RandomChunks(topology, 4'000'000));
}

BENCHMARK_CAPTURE(WriteBfb, hypercube10, "hypercube(10)")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ReadBfb, hypercube10, "hypercube(10)")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(WriteBfb, torus32x32, "torus(32,32)")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ReadBfb, torus32x32, "torus(32,32)")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(WriteRandom, mesh100x100, "mesh(100,100)")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ReadRandom, mesh100x100, "mesh(100,100)")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

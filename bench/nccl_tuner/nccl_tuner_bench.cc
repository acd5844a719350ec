// One decision of the NCCL tuner plug-in beside an empty call through the same kind of pointer.
// Tables: as `tutti rules` writes them (a few ranges), and the largest that is accepted. Sizes
// differ from call to call, so that branches are not foreseen.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "nccl_tuner/table.h"

// The plug-in's own function, by its face to NCCL.
extern "C" const tutti::nccl_tuner::TunerV6 ncclTunerPlugin_v7;

namespace tutti::nccl_tuner {
namespace {

constexpr int kAllReduce = 4;
constexpr size_t kSizes = 1024;

extern "C" int Nothing(void*, int, size_t, int, float**, int, int, int, int*) { return kSuccess; }

std::vector<uint64_t> RandomSizes() {
  std::mt19937_64 rng(1);
  std::vector<uint64_t> sizes(kSizes);
  for (uint64_t& size : sizes) size = (uint64_t{1} << (rng() % 34)) + rng() % 4096;
  return sizes;
}

Decisions ManyRanges(size_t count) {
  std::vector<Row> rows(count);
  for (size_t i = 0; i < count; ++i) {
    rows[i].function = kAllReduce;
    rows[i].from = i << 21;
    rows[i].to = ((i + 1) << 21) - 1;
    rows[i].choice = {static_cast<int16_t>(i % 2), 2, 0};
  }
  return Decisions(rows, 8, 1);
}

void Call(benchmark::State& state, CollectiveInfo function, Decisions decisions) {
  const std::vector<uint64_t> sizes = RandomSizes();
  std::array<std::array<float, kNumProtocols>, kNumAlgorithms> times{};
  benchmark::DoNotOptimize(function);
  size_t at = 0;
  for (auto _ : state) {
    int channels = 0;
    function(&decisions, kAllReduce, sizes[at++ % kSizes], 1,
             reinterpret_cast<float**>(times.data()), kNumAlgorithms, kNumProtocols, 0, &channels);
    benchmark::DoNotOptimize(times);
  }
}

BENCHMARK_CAPTURE(Call, Empty, Nothing, ManyRanges(4));
BENCHMARK_CAPTURE(Call, FourRanges, ncclTunerPlugin_v7.collective_info, ManyRanges(4));
BENCHMARK_CAPTURE(Call, MostRanges, ncclTunerPlugin_v7.collective_info, ManyRanges(kMaxRows));

}  // namespace
}  // namespace tutti::nccl_tuner

BENCHMARK_MAIN();

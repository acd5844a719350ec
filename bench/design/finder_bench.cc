// The topology finder: one question, and every size up to 2000 for four degrees.
#include <benchmark/benchmark.h>

#include "tutti/base/check.h"
#include "tutti/design/finder.h"

namespace tutti {
namespace {

// Issue: at most 0.5 s without a database and without flow values.
void OneQuestion(benchmark::State& state) {
  const auto ranks = static_cast<int32_t>(state.range(0));
  const auto degree = static_cast<int32_t>(state.range(1));
  for (auto _ : state) {
    const Result<std::vector<Design>> designs =
        FindFrontier({.ranks = ranks, .degree = degree, .bidirectional_only = false, .bases = {}});
    TUTTI_CHECK(designs.has_value());
    benchmark::DoNotOptimize(designs->size());
  }
}
BENCHMARK(OneQuestion)
    ->Args({1024, 4})
    ->Args({1999, 4})
    ->Args({2000, 16})
    ->Args({100'000, 4})
    ->Unit(benchmark::kMillisecond);

// At most 20 s on two cores.
void AllSizes(benchmark::State& state) {
  for (auto _ : state) {
    const Result<std::vector<SizedFrontier>> frontiers = FindAllFrontiers({2, 4, 8, 16}, 2000);
    TUTTI_CHECK(frontiers.has_value());
    int64_t designs = 0;
    for (const SizedFrontier& sized : *frontiers)
      designs += static_cast<int64_t>(sized.designs.size());
    state.counters["designs"] = static_cast<double>(designs);
  }
}
BENCHMARK(AllSizes)->Unit(benchmark::kSecond)->Iterations(1)->UseRealTime();

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

// How many transfers a second the verifier checks. items_per_second counts transfers.
// Figure to reach: the all-gather on hypercube(10), over a million deliveries, in at most 5 s.
#include <benchmark/benchmark.h>

#include "bench_schedules.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace {

using bench::Backwards;
using bench::Hypercube;
using bench::ShortestPathAllGather;
using bench::Torus;

void Run(benchmark::State& state, const Topology& topology, const Schedule& schedule) {
  for (auto _ : state) {
    const VerifyReport report = Verify(topology, schedule.collective, schedule);
    if (!report.verified()) state.SkipWithError(report.violations.front().message.c_str());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(schedule.transfers.size()));
  state.counters["transfers"] = static_cast<double>(schedule.transfers.size());
}

void BM_HypercubeAllGather(benchmark::State& state) {
  const Topology topology = Hypercube(10);
  Run(state, topology, ShortestPathAllGather(topology, 2520));
}
BENCHMARK(BM_HypercubeAllGather)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void BM_HypercubeReduceScatter(benchmark::State& state) {
  const Topology topology = Hypercube(10);
  Run(state, topology, Backwards(topology, ShortestPathAllGather(topology, 2520)));
}
BENCHMARK(BM_HypercubeReduceScatter)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void BM_Torus50x50AllGather(benchmark::State& state) {
  const Topology topology = Torus(50);
  Run(state, topology, ShortestPathAllGather(topology, 12));
}
BENCHMARK(BM_Torus50x50AllGather)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

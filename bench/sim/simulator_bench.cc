// How many transfers a second the simulator handles on one core. items_per_second counts transfers.
// Figure to reach: 5 million, in every mode.
#include <benchmark/benchmark.h>

#include "../verify/bench_schedules.h"
#include "tutti/sim/simulator.h"

namespace tutti {
namespace {

using bench::Backwards;
using bench::Hypercube;
using bench::ShortestPathAllGather;
using bench::Torus;

void Run(benchmark::State& state, const Topology& topology, const Schedule& schedule,
         StepMode mode) {
  for (auto _ : state) {
    const Result<SimReport> report =
        Simulate(topology, schedule, {int64_t{1} << 30, LinkModel::kHeld, mode});
    if (!report) state.SkipWithError(report.error().message.c_str());
    benchmark::DoNotOptimize(report);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(schedule.transfers.size()));
  state.counters["transfers"] = static_cast<double>(schedule.transfers.size());
}

void BM_HypercubeAllGatherBarrier(benchmark::State& state) {
  const Topology topology = Hypercube(10);
  Run(state, topology, ShortestPathAllGather(topology, 2520), StepMode::kBarrier);
}
BENCHMARK(BM_HypercubeAllGatherBarrier)->Unit(benchmark::kMillisecond);

void BM_HypercubeAllGatherEager(benchmark::State& state) {
  const Topology topology = Hypercube(10);
  Run(state, topology, ShortestPathAllGather(topology, 2520), StepMode::kEager);
}
BENCHMARK(BM_HypercubeAllGatherEager)->Unit(benchmark::kMillisecond);

void BM_HypercubeReduceScatterEager(benchmark::State& state) {
  const Topology topology = Hypercube(10);
  Run(state, topology, Backwards(topology, ShortestPathAllGather(topology, 2520)),
      StepMode::kEager);
}
BENCHMARK(BM_HypercubeReduceScatterEager)->Unit(benchmark::kMillisecond);

void BM_Torus50x50AllGatherEager(benchmark::State& state) {
  const Topology topology = Torus(50);
  Run(state, topology, ShortestPathAllGather(topology, 12), StepMode::kEager);
}
BENCHMARK(BM_Torus50x50AllGatherEager)->Unit(benchmark::kMillisecond);

// Every transfer is a message of its own.
Schedule OneByOne(Schedule schedule) {
  schedule.kind = ScheduleKind::kTimed;
  schedule.size_bytes = int64_t{1} << 30;
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    schedule.start_ps.push_back(static_cast<int64_t>(i));
    schedule.transfers[i].step = 0;
  }
  schedule.num_steps = 0;
  return schedule;
}

void BM_HypercubeTimedAllGather(benchmark::State& state) {
  const Topology topology = Hypercube(10);
  Run(state, topology, OneByOne(ShortestPathAllGather(topology, 2520)), StepMode::kEager);
}
BENCHMARK(BM_HypercubeTimedAllGather)->Unit(benchmark::kMillisecond);

void BM_HypercubeTimedReduceScatter(benchmark::State& state) {
  const Topology topology = Hypercube(10);
  Run(state, topology, OneByOne(Backwards(topology, ShortestPathAllGather(topology, 2520))),
      StepMode::kEager);
}
BENCHMARK(BM_HypercubeTimedReduceScatter)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

// BFB beside the paper's implementation and the optimum. Counters: `paper_s` is what the paper's
// implementation took (table 6), `tb_over_bound` the bandwidth time over (N - 1) / N, `peak_GiB`
// the most memory the process has held so far. Figures to reach on two cores: hypercube(10) and
// torus(50,50) with the schedule in memory in at most 0.5 s each, torus(200,200) without a schedule
// in at most 60 s and 8 GiB.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <utility>

#include "tutti/sched/cost.h"
#include "tutti/synth/bfb.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

double PeakGib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

void AddCounters(benchmark::State& state, const Rational& tb, int32_t num_ranks, double paper_s) {
  state.counters["tb_over_bound"] = (tb / Rational(num_ranks - 1, num_ranks)).ToDouble();
  state.counters["peak_GiB"] = PeakGib();
  if (paper_s > 0) state.counters["paper_s"] = paper_s;
}

void AllGatherSchedule(benchmark::State& state, const char* expression, double paper_s) {
  const Topology topology = *ParseTopology(expression);
  const Collective collective = *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
  Rational tb;
  int64_t transfers = 0;
  for (auto _ : state) {
    const Result<Schedule> schedule = MakeBfb(topology, collective, {});
    benchmark::DoNotOptimize(schedule->transfers.data());
    state.PauseTiming();
    transfers = static_cast<int64_t>(schedule->transfers.size());
    tb = AnalyticCost(topology, *schedule).tb;
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * transfers);
  AddCounters(state, tb, topology.num_ranks(), paper_s);
}

void AllGatherCost(benchmark::State& state, const char* expression) {
  const Topology topology = *ParseTopology(expression);
  const Collective collective = *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
  Rational tb;
  for (auto _ : state) tb = *ComputeBfbCost(topology, collective, {})->tb;
  AddCounters(state, tb, topology.num_ranks(), 0);
}

BENCHMARK_CAPTURE(AllGatherSchedule, hypercube_10, "hypercube(10)", 52.7)
    ->Unit(benchmark::kSecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(AllGatherSchedule, torus_50_50, "torus(50,50)", 61.1)
    ->Unit(benchmark::kSecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(AllGatherSchedule, genkautz_16_2000, "genkautz(16,2000)", 0)
    ->Unit(benchmark::kSecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(AllGatherCost, hypercube_10, "hypercube(10)")
    ->Unit(benchmark::kSecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(AllGatherCost, torus_200_200, "torus(200,200)")
    ->Unit(benchmark::kSecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

// All-gather by time-expanded matching. Counters: `rounds`, and `peer_s`,
// what the published TACOS code took for as many rounds on one core of a 2.5 GHz Xeon. Figures to
// reach: mesh 32x32 in 0.15 s with the schedule in memory.
#include <benchmark/benchmark.h>

#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

void AllGather(benchmark::State& state, const char* expression, int32_t chunks, double peer_s) {
  const Topology topology = *ParseTopology(expression);
  const Collective collective = *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
  const Synthesizer& ten = **FindSynthesizer("ten");
  int32_t rounds = 0;
  int64_t transfers = 0;
  for (auto _ : state) {
    const Result<Schedule> schedule = RunSynthesizer(ten, topology, collective, {.chunks = chunks});
    rounds = schedule->num_steps;
    transfers = static_cast<int64_t>(schedule->transfers.size());
  }
  state.SetItemsProcessed(state.iterations() * transfers);
  state.counters["rounds"] = rounds;
  if (peer_s > 0) state.counters["peer_s"] = peer_s;
}

BENCHMARK_CAPTURE(AllGather, mesh_16_16, "mesh(16,16)", 1, 2.1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(AllGather, mesh_20_20, "mesh(20,20)", 1, 7.4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(AllGather, mesh_32_32, "mesh(32,32)", 1, 151)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(AllGather, torus_8_8_8, "torus(8,8,8)", 1, 9.3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(AllGather, torus_10_10_10, "torus(10,10,10)", 1, 83.7)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(AllGather, mesh_16_16_x4, "mesh(16,16)", 4, 35.5)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(AllGather, mesh_64_64, "mesh(64,64)", 1, 0)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

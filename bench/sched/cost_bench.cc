// Exact cost of large step schedules. items_per_second counts transfers.
#include <benchmark/benchmark.h>

#include <utility>

#include "tutti/base/random.h"
#include "tutti/sched/cost.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

void Cost(benchmark::State& state, const char* expression, bool seconds) {
  const Topology topology = *ParseTopology(expression);
  Schedule schedule{*Collective::Make(CollectiveKind::kAllGather, topology.num_ranks())};
  constexpr size_t kTransfers = 6'000'000;
  schedule.num_steps = 100;
  schedule.units_per_shard = 64;
  Random random(1);
  for (size_t i = 0; i < kTransfers; ++i) {
    const auto begin = static_cast<int32_t>(random.Below(64));
    const auto link =
        static_cast<int32_t>(random.Below(static_cast<uint64_t>(topology.num_links())));
    schedule.transfers.push_back({ShardId{0}, LinkId{link}, begin, 64,
                                  static_cast<int32_t>(i * 100 / kTransfers), TransferOp::kCopy});
  }
  for (auto _ : state) {
    if (seconds) {
      benchmark::DoNotOptimize(AnalyticSeconds(topology, schedule, 1 << 30));
    } else {
      benchmark::DoNotOptimize(AnalyticCost(topology, schedule));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kTransfers));
  state.counters["links"] = topology.num_links();
}

BENCHMARK_CAPTURE(Cost, homogeneous, "torus(50,50)", false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Cost, homogeneous_seconds, "torus(50,50)", true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Cost, two_bandwidths, "torus(50,50,bw=[50,30]GB/s)", false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Cost, two_bandwidths_seconds, "torus(50,50,bw=[50,30]GB/s)", true)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

// How long a policy takes to decide for one job of n ranks, spread over 128 racks with 16 spines, beside
// the rings alone. Figure to reach: 0.2 ms for 32 ranks, linear to 4096. `ranks/s` says whether it is.
#include <benchmark/benchmark.h>

#include "tutti/control/policy.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

void Run(benchmark::State& state, const char* name) {
  static const ClusterView kView = *ClusterView::Make(
      *ParseTopology("cluster(boxes=512,gpus=8,nics=8,nic=200Gbit/s,fabric=spine_leaf(128,16),"
                     "oversubscription=2)"));
  const Policy* const policy = *FindPolicy(name);
  PolicyInput input;
  input.view = &kView;
  input.channels = 16;
  input.jobs.resize(1);
  // Evenly spread, as many racks as it can touch.
  const auto ranks = static_cast<int32_t>(state.range(0));
  for (int32_t i = 0; i < ranks; ++i)
    input.jobs[0].ranks.push_back(i * (kView.num_ranks() / ranks));
  for (auto _ : state) {
    Result<PolicyOutput> output = Decide(*policy, input);
    if (!output) state.SkipWithError(output.error().message.c_str());
    benchmark::DoNotOptimize(output);
  }
  state.counters["ranks/s"] = benchmark::Counter(static_cast<double>(state.iterations() * ranks),
                                                 benchmark::Counter::kIsRate);
}

void BM_LocalityRing(benchmark::State& state) { Run(state, "locality-ring"); }
BENCHMARK(BM_LocalityRing)->RangeMultiplier(4)->Range(32, 4096)->Unit(benchmark::kMicrosecond);

void BM_FairFlowAssignment(benchmark::State& state) { Run(state, "ffa"); }
BENCHMARK(BM_FairFlowAssignment)
    ->RangeMultiplier(4)
    ->Range(32, 4096)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

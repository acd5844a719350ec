// Wall time of the classic synthesizers, schedule in memory. items_per_second counts transfers.
// Figure to reach: the ring all-gather of 1024 ranks, two million transfers, well below a second.
#include <benchmark/benchmark.h>

#include <string>

#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

void Synthesize(benchmark::State& state, const std::string& name, CollectiveKind kind,
                const std::string& expression) {
  const Topology topology = *ParseTopology(expression);
  const Synthesizer& synthesizer = **FindSynthesizer(name);
  Collective::Options options;
  if (kind == CollectiveKind::kAllReduce && synthesizer.one_shard_all_reduce)
    options.all_reduce_shards = 1;
  const Collective collective = *Collective::Make(kind, topology.num_ranks(), options);
  int64_t transfers = 0;
  for (auto _ : state) {
    const Result<Schedule> made = RunSynthesizer(synthesizer, topology, collective, {});
    transfers += static_cast<int64_t>(made->transfers.size());
    benchmark::DoNotOptimize(made->transfers.data());
  }
  state.SetItemsProcessed(transfers);
}

using Kind = CollectiveKind;

BENCHMARK_CAPTURE(Synthesize, ring_on_ring_1024, "ring", Kind::kAllGather, "ring(1024)");
BENCHMARK_CAPTURE(Synthesize, ring_on_torus_32_32, "ring", Kind::kAllGather, "torus(32,32)");
BENCHMARK_CAPTURE(Synthesize, ring_on_dgx1, "ring", Kind::kAllReduce, "dgx1");
BENCHMARK_CAPTURE(Synthesize, direct_on_torus_16_16, "direct", Kind::kAllGather, "torus(16,16)");
BENCHMARK_CAPTURE(Synthesize, direct_exchange_on_torus_16_16, "direct", Kind::kAllToAll,
                  "torus(16,16)");
BENCHMARK_CAPTURE(Synthesize, rhd_on_hypercube_10, "rhd", Kind::kAllReduce, "hypercube(10)");
BENCHMARK_CAPTURE(Synthesize, bruck_on_torus_32_32, "bruck", Kind::kAllGather, "torus(32,32)");
BENCHMARK_CAPTURE(Synthesize, torus_dims_on_torus_32_32, "torus-dims", Kind::kAllGather,
                  "torus(32,32)");
BENCHMARK_CAPTURE(Synthesize, dbt_on_torus_32_32, "dbt", Kind::kAllReduce, "torus(32,32)");

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

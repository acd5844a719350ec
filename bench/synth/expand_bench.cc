// Wall time of expanding schedules, and beside it of searching one for the same network.
// items_per_second counts transfers. Figure to reach: line(circulant(16,3,4),3), 1024 ranks and 1.2
// million transfers, well below 2 s.
#include <benchmark/benchmark.h>

#include <string>

#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

void Synthesize(benchmark::State& state, const std::string& name, const std::string& expression) {
  const Topology topology = *ParseTopology(expression);
  const Collective all_gather = *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
  int64_t transfers = 0;
  for (auto _ : state) {
    const Result<Schedule> made = RunSynthesizer(**FindSynthesizer(name), topology, all_gather, {});
    transfers += static_cast<int64_t>(made->transfers.size());
    benchmark::DoNotOptimize(made->transfers.data());
  }
  state.SetItemsProcessed(transfers);
}

constexpr const char* kLine = "line(circulant(16,3,4),3)";
constexpr const char* kDegree = "degree(line(hamming(2,3),2),4)";
constexpr const char* kPower = "power(product(uniring(1,4),uniring(1,8)),2)";

BENCHMARK_CAPTURE(Synthesize, expand_line_1024, "expand", kLine);
BENCHMARK_CAPTURE(Synthesize, bfb_line_1024, "bfb", kLine);
BENCHMARK_CAPTURE(Synthesize, expand_degree_576, "expand", kDegree);
BENCHMARK_CAPTURE(Synthesize, bfb_degree_576, "bfb", kDegree);
BENCHMARK_CAPTURE(Synthesize, expand_power_1024, "expand", kPower);
BENCHMARK_CAPTURE(Synthesize, bfb_power_1024, "bfb", kPower);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

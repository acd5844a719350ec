// Lowering and judging the schedules of whole networks; items are instructions.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>

#include "tutti/lower/lowering.h"
#include "tutti/lower/msccl_xml.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

struct Case {
  Topology topology;
  Schedule schedule;
};

Case Make(const std::string& expression, CollectiveKind kind, const std::string& algorithm) {
  Result<Topology> topology = ParseTopology(expression);
  Result<Collective> collective = Collective::Make(kind, topology->num_ranks());
  Result<Schedule> schedule =
      (*FindSynthesizer(algorithm))->synthesize(*topology, *collective, SynthOptions());
  if (!schedule) std::abort();
  return {std::move(*topology), std::move(*schedule)};
}

int64_t NumInstructions(const Plan& plan) {
  int64_t count = 0;
  for (const RankPlan& rank : plan.ranks)
    for (const Stream& stream : rank.streams)
      count += static_cast<int64_t>(stream.instructions.size());
  return count;
}

void BenchLower(benchmark::State& state, const std::string& expression, CollectiveKind kind,
                const std::string& algorithm) {
  const Case made = Make(expression, kind, algorithm);
  int64_t instructions = 0;
  for (auto _ : state) instructions += NumInstructions(*Lower(made.topology, made.schedule));
  state.SetItemsProcessed(instructions);
  state.counters["transfers"] = static_cast<double>(made.schedule.transfers.size());
}

void BenchCheck(benchmark::State& state, const std::string& expression, CollectiveKind kind,
                const std::string& algorithm) {
  const Case made = Make(expression, kind, algorithm);
  const Result<Plan> plan = Lower(made.topology, made.schedule);
  for (auto _ : state)
    if (!CheckPlan(*plan).empty()) state.SkipWithError("the plan is wrong");
  state.SetItemsProcessed(state.iterations() * NumInstructions(*plan));
}

BENCHMARK_CAPTURE(BenchLower, Torus888AllReduce, "torus(8,8,8)", CollectiveKind::kAllReduce, "bfb")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BenchLower, Hypercube10AllGather, "hypercube(10)", CollectiveKind::kAllGather,
                  "bfb")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BenchCheck, Torus444AllReduce, "torus(4,4,4)", CollectiveKind::kAllReduce, "bfb")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BenchCheck, Torus888AllReduce, "torus(8,8,8)", CollectiveKind::kAllReduce, "bfb")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BenchCheck, Complete64AllReduce, "complete(64)", CollectiveKind::kAllReduce,
                  "bfb")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

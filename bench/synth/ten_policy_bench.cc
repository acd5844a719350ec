// Policies of `ten` on the unequal networks of [tacos] figure 15 and a torus: all-gather of 2^30
// bytes, 4 chunks a rank. Counter `of_bound`: the proven bound over the completion time, the mean
// over seeds 1 .. 5 of one try each. A name ends in the waiting rule and whether the final pass was
// made: random/never/plain is the paper's.
#include <benchmark/benchmark.h>

#include <string>

#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/ten.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

constexpr int kSeeds = 5;
constexpr const char* kNetworks[] = {
    "dragonfly(5,4,bw=[400,200]GB/s)", "dragonfly(4,5,bw=[400,200]GB/s)",
    "unwind(switch2d(8,4,bw=[300,25]GB/s),degree=1)",
    "unwind(rfs(2,4,8,bw=[200,100,50]GB/s),degree=1)", "torus(4,4,4,bw=[200,100,50]GB/s)"};

void AllGather(benchmark::State& state, const std::string& expression, SynthOptions options) {
  const Topology topology = *ParseTopology(expression);
  const Collective collective = *Collective::Make(CollectiveKind::kAllGather, topology.num_ranks());
  const Synthesizer& ten = **FindSynthesizer("ten");
  const double bound_s = ComputeBounds(topology, collective)->Seconds(options.size_bytes);
  double of_bound = 0;
  for (auto _ : state) {
    of_bound = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      options.seed = static_cast<uint64_t>(seed);
      const Result<Schedule> made = RunSynthesizer(ten, topology, collective, options);
      if (!made) return state.SkipWithError(made.error().message.c_str());
      of_bound +=
          bound_s / PredictedSeconds(topology, *made, options.size_bytes).ToDouble() / kSeeds;
    }
  }
  state.counters["of_bound"] = of_bound;
}

void Register(const std::string& network, const std::string& policy, Waiting waiting,
              bool final_pass, int32_t tries) {
  const SynthOptions options{
      .chunks = 4, .tries = tries, .policy = policy, .waiting = waiting, .final_pass = final_pass};
  const std::string wait = waiting == Waiting::kAuto    ? ""
                           : waiting == Waiting::kNever ? "/never"
                                                        : "/waits";
  const std::string name = network + "/" + (policy.empty() ? "default" : policy) + wait +
                           (final_pass ? "/final" : "/plain");
  benchmark::RegisterBenchmark(
      name.c_str(),
      [network, options](benchmark::State& state) { AllGather(state, network, options); })
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  using tutti::Waiting;
  for (const char* network : tutti::kNetworks)
    for (const bool final_pass : {false, true}) {
      for (const tutti::TenPolicy& policy : tutti::TenPolicies())
        for (const Waiting waiting : {Waiting::kNever, Waiting::kAlways})
          tutti::Register(network, std::string(policy.name), waiting, final_pass, 1);
      tutti::Register(network, "", Waiting::kAuto, final_pass, 0);
    }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

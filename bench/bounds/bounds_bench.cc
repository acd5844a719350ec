// How long the limits of a network take. The figures of other methods are in
// docs/guide/bounds.md.
//
//   bounds_bench --benchmark_filter=AllGather

#include <benchmark/benchmark.h>

#include <string>

#include "tutti/bounds/bounds.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace {

void Measure(benchmark::State& state, const std::string& network, CollectiveKind kind) {
  const Result<Topology> topology = ParseTopology(network);
  if (!topology) return state.SkipWithError(topology.error().message.c_str());
  const Result<Collective> collective = Collective::Make(kind, topology->num_ranks());
  if (!collective) return state.SkipWithError(collective.error().message.c_str());
  for (auto _ : state) {
    const Result<Bounds> bounds = ComputeBounds(*topology, *collective);
    if (!bounds) return state.SkipWithError(bounds.error().message.c_str());
    state.counters["tb"] = bounds->tb.ToDouble();
    if (bounds->f_upper) state.counters["f_upper"] = bounds->f_upper->ToDouble();
  }
}

void AllGather(benchmark::State& state, const std::string& network) {
  Measure(state, network, CollectiveKind::kAllGather);
}
void AllReduce(benchmark::State& state, const std::string& network) {
  Measure(state, network, CollectiveKind::kAllReduce);
}
void AllToAll(benchmark::State& state, const std::string& network) {
  Measure(state, network, CollectiveKind::kAllToAll);
}

#define TUTTI_NETWORK(function, name, expression) \
  BENCHMARK_CAPTURE(function, name, std::string(expression))->Unit(benchmark::kMillisecond)

TUTTI_NETWORK(AllGather, hypercube_10, "hypercube(10)");
TUTTI_NETWORK(AllGather, torus_50_50, "torus(50,50)");
TUTTI_NETWORK(AllGather, genkautz_4_1000, "genkautz(4,1000)");
TUTTI_NETWORK(AllGather, mesh_5_8_two_speeds, "mesh(5,8,bw=[35,80]GiB/s)");
TUTTI_NETWORK(AllGather, rfs_2_4_8, "rfs(2,4,8,bw=[200,100,50]GB/s)");
TUTTI_NETWORK(AllGather, torus_200_200, "torus(200,200)");
TUTTI_NETWORK(AllReduce, torus_50_50, "torus(50,50)");
TUTTI_NETWORK(AllReduce, genkautz_4_1000, "genkautz(4,1000)");
TUTTI_NETWORK(AllToAll, genkautz_4_50, "genkautz(4,50)");
TUTTI_NETWORK(AllToAll, genkautz_4_100, "genkautz(4,100)");
TUTTI_NETWORK(AllToAll, genkautz_4_1000, "genkautz(4,1000)");
TUTTI_NETWORK(AllToAll, torus_16_16, "torus(16,16)");

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

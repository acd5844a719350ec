// Making networks and finding their symmetries. Counters: links of the network, and work, the links
// that a search looked at, which does not depend on the machine.
#include <benchmark/benchmark.h>

#include <string>

#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"
#include "tutti/topo/properties.h"
#include "tutti/topo/symmetry.h"

namespace tutti {
namespace {

void Parse(benchmark::State& state, const std::string& expression) {
  for (auto _ : state) {
    const Topology topology = *ParseTopology(expression);
    state.counters["links"] = topology.num_links();
  }
}

void Hops(benchmark::State& state, const std::string& expression) {
  const Topology topology = *ParseTopology(expression);
  for (auto _ : state) state.counters["diameter"] = CountHops(topology).diameter;
}

void Json(benchmark::State& state, const std::string& expression) {
  const Topology topology = *ParseTopology(expression);
  for (auto _ : state) {
    const std::string text = TopologyToJson(topology);
    benchmark::DoNotOptimize(TopologyFromJson(text)->num_links());
    state.counters["bytes"] = static_cast<double>(text.size());
  }
}

void Orbits(benchmark::State& state, const std::string& expression) {
  const Topology topology = *ParseTopology(expression);
  for (auto _ : state) {
    const NodeOrbits orbits = FindNodeOrbits(topology);
    state.counters["orbits"] = orbits.num_orbits();
    state.counters["proven"] = orbits.proven ? 1 : 0;
  }
}

// 1: reverse-symmetric, 0: proven not, -1: gave up.
void Reverse(benchmark::State& state, const std::string& expression) {
  const Topology topology = *ParseTopology(expression);
  for (auto _ : state) {
    const IsomorphismSearch search = FindReverseSymmetry(topology);
    using Outcome = IsomorphismSearch::Outcome;
    state.counters["symmetric"] = search.outcome == Outcome::kFound  ? 1
                                  : search.outcome == Outcome::kNone ? 0
                                                                     : -1;
    state.counters["work"] = static_cast<double>(search.work);
  }
}

#define TUTTI_BENCH(function, name, expression) \
  BENCHMARK_CAPTURE(function, name, expression)->Unit(benchmark::kMillisecond)

TUTTI_BENCH(Parse, torus_50_50, "torus(50,50)");
TUTTI_BENCH(Parse, torus_200_200, "torus(200,200)");
TUTTI_BENCH(Parse, torus_1000_1000, "torus(1000,1000)");
TUTTI_BENCH(Hops, hypercube_10, "hypercube(10)");
TUTTI_BENCH(Hops, torus_100_100, "torus(100,100)");
TUTTI_BENCH(Json, torus_200_200, "torus(200,200)");
TUTTI_BENCH(Orbits, torus_50_50, "torus(50,50)");
TUTTI_BENCH(Orbits, torus_200_200, "torus(200,200)");
TUTTI_BENCH(Orbits, hypercube_10, "hypercube(10)");
TUTTI_BENCH(Orbits, complete_500, "complete(500)");
TUTTI_BENCH(Orbits, mesh_50_50, "mesh(50,50)");
TUTTI_BENCH(Orbits, genkautz_4_1000, "genkautz(4,1000)");
TUTTI_BENCH(Orbits, random_damage, "without(torus(30,30),links=20)");
TUTTI_BENCH(Reverse, torus_50_50, "torus(50,50)");
TUTTI_BENCH(Reverse, hypercube_10, "hypercube(10)");
TUTTI_BENCH(Reverse, kautz_4_4, "kautz(4,4)");
TUTTI_BENCH(Reverse, genkautz_4_1000, "genkautz(4,1000)");
TUTTI_BENCH(Reverse, genkautz_4_1023, "genkautz(4,1023)");
TUTTI_BENCH(Reverse, genkautz_16_2000, "genkautz(16,2000)");
TUTTI_BENCH(Reverse, debruijn_2_10, "debruijn(2,10)");

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();

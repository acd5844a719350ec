// Makes an all-reduce and runs it over processes of this machine.
#include <iostream>

#include "tutti/lower/lowering.h"
#include "tutti/runtime/executor.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"

int main() {
  const auto fail = [](const tutti::Error& error) {
    std::cerr << "run_all_reduce: " << error.message << "\n";
    return 2;
  };
  const auto topology = tutti::ParseTopology("torus(2,2)");
  const auto all_reduce =
      tutti::Collective::Make(tutti::CollectiveKind::kAllReduce, topology->num_ranks());
  const auto bfb = tutti::FindSynthesizer("bfb");
  const auto schedule = tutti::RunSynthesizer(**bfb, *topology, *all_reduce, {});
  if (!schedule) return fail(schedule.error());
  const auto plan = tutti::Lower(*topology, *schedule);
  if (!plan) return fail(plan.error());
  tutti::RunOptions options;
  options.size_bytes = 1 << 20;
  options.iterations = 3;
  const auto report = tutti::RunPlan(*plan, options);
  if (!report) return fail(report.error());
  std::cout << report->size_bytes << " bytes on 4 ranks, " << report->wrong << " elements wrong\n";
  return report->wrong == 0 ? 0 : 1;
}

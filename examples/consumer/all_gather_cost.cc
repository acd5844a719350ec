// Makes an all-gather for a network given as an expression, proves it, and prints its exact cost.
//
//   all_gather_cost 'torus(4,4)'
#include <iostream>

#include "tutti/bounds/bounds.h"
#include "tutti/sched/cost.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/expression.h"
#include "tutti/verify/verifier.h"

int main(int argc, char** argv) {
  const auto fail = [](const tutti::Error& error) {
    std::cerr << "all_gather_cost: " << error.message << "\n";
    return 2;
  };
  const auto topology = tutti::ParseTopology(argc > 1 ? argv[1] : "torus(4,4)");
  if (!topology) return fail(topology.error());
  const auto collective =
      tutti::Collective::Make(tutti::CollectiveKind::kAllGather, topology->num_ranks());
  if (!collective) return fail(collective.error());
  const auto bfb = tutti::FindSynthesizer("bfb");
  if (!bfb) return fail(bfb.error());
  const auto schedule = tutti::RunSynthesizer(**bfb, *topology, *collective, {});
  if (!schedule) return fail(schedule.error());
  const auto bounds = tutti::ComputeBounds(*topology, *collective);
  if (!bounds) return fail(bounds.error());

  const bool verified = tutti::Verify(*topology, *collective, *schedule).verified();
  const tutti::StepCost cost = tutti::AnalyticCost(*topology, *schedule);
  std::cout << topology->name() << ": " << cost.tl << " steps, TB = " << cost.tb.ToString()
            << " M/B (bound " << bounds->tb.ToString() << "), "
            << (verified ? "proven correct" : "NOT correct") << "\n";
  return verified ? 0 : 1;
}

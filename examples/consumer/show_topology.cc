// Makes a network from an expression or a file and prints what no collective on it can beat.
#include <iostream>

#include "tutti/bounds/bounds.h"
#include "tutti/topo/expression.h"
#include "tutti/topo/json.h"

int main(int argc, char** argv) {
  // Expressions name families; files hold any network.
  const std::string text = argc > 1 ? argv[1] : "without(torus(4,4),links=2,seed=1)";
  const auto topology =
      text.ends_with(".json") ? tutti::ReadTopologyFile(text) : tutti::ParseTopology(text);
  if (!topology) {
    std::cerr << "show_topology: " << topology.error().message << "\n";
    return 2;
  }
  std::cout << topology->name() << ": " << topology->num_ranks() << " ranks, "
            << topology->num_links() << " links\n";
  for (const auto kind : {tutti::CollectiveKind::kAllGather, tutti::CollectiveKind::kAllReduce}) {
    const auto collective = tutti::Collective::Make(kind, topology->num_ranks());
    const auto bounds = tutti::ComputeBounds(*topology, *collective);
    if (!bounds) return 2;
    std::cout << tutti::Name(kind) << " of 1 GB takes at least "
              << 1e3 * bounds->Seconds(1'000'000'000) << " ms\n";
  }
}

// What messages inside a node cost, and what that decides: flat against hierarchical algorithms
// with three prices of them (adr 0027). Not in [tuna].
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "registry.h"
#include "tables.h"
#include "tuna.h"

namespace tutti {
namespace tuna_local {
namespace {

using namespace tuna;

constexpr std::array<const char*, 2> kPlatforms = {"polaris", "fugaku"};
constexpr std::array<int64_t, 3> kSizes = {16, 128, 512};
struct Price {
  LocalMessages local;
  const char* name;
};
constexpr std::array<Price, 3> kPrices = {{{LocalMessages::kAsRemote, "as between nodes"},
                                           {LocalMessages::kOfPlatform, "as charged"},
                                           {LocalMessages::kCheap, "50 ns, 0.1 ns a byte"}}};
constexpr std::array<Family, 4> kFamilies = {{{"tuna", "TuNA"},
                                              {"coalesced", "coalesced"},
                                              {"shared", "shared"},
                                              {"shared-coalesced", "shared-coalesced"}}};

std::vector<std::string> Algorithms(const Machine& machine) {
  std::vector<std::string> names = TunaOf(FewRadices(machine.ranks));
  for (std::string& name : Hierarchical(machine)) names.push_back(std::move(name));
  return names;
}

// The best flat algorithm is TuNA, or the direct floor where that is less, as in figure 13.
Result<ResultRow> RowOf(const Machine& machine, const Price& price, int64_t size,
                        std::span<const Measured> measured) {
  const Result<double> floor = DirectFloor(machine, size);
  if (!floor) return tl::unexpected(floor.error());
  const Measured* tuna = Fastest(measured, size, {"tuna"});
  const double flat = std::min(*floor, tuna->seconds);
  ResultRow row{.label = fmt::format("{}, {}, {}", size, machine.ranks, price.name),
                .cells = CellsOf(measured, size, kFamilies)};
  row.cells.push_back(Word(ParametersOf(*tuna)));
  row.cells.push_back(TimesFaster(Fastest(measured, size, {"coalesced"}), flat));
  row.cells.push_back(TimesFaster(Fastest(measured, size, {"shared", "shared-coalesced"}), flat));
  return row;
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  const std::vector<int64_t> ladder = RanksUpTo(512, options);
  std::vector<Simulation> simulations;
  for (const char* platform : kPlatforms)
    for (const int64_t ranks : ladder)
      for (const Price& price : kPrices) {
        const Machine machine{.platform = platform, .ranks = ranks, .local = price.local};
        simulations.push_back({machine, Grid(kSizes, Algorithms(machine))});
      }
  const Result<std::vector<std::vector<Measured>>> all = SimulateAll(simulations, options);
  if (!all) return tl::unexpected(all.error());
  ExperimentResult result;
  for (const char* platform : kPlatforms) {
    ResultTable table{.title = fmt::format("What messages inside a node cost, {}", platform),
                      .label_name = "S (bytes), P, inside a node",
                      .columns = ColumnsOf(kFamilies)};
    table.columns.push_back({.name = "TuNA's best"});
    table.columns.push_back({.name = "best flat / coalesced", .digits = 2});
    table.columns.push_back({.name = "best flat / best shared", .digits = 2});
    for (const int64_t size : kSizes) {
      for (size_t i = 0; i < simulations.size(); ++i) {
        if (simulations[i].machine.platform != platform) continue;
        Result<ResultRow> row =
            RowOf(simulations[i].machine, kPrices[i % kPrices.size()], size, (*all)[i]);
        if (!row) return tl::unexpected(row.error());
        table.rows.push_back(*std::move(row));
      }
    }
    result.tables.push_back(std::move(table));
  }
  result.notes = {
      SimulationNote(),
      "As between nodes: overhead and gap of the network's adapter for every message, which is all "
      "that SMPI alone can do, and too much inside a node. As charged: the platform's "
      "tutti_local_* properties, as everywhere else. 50 ns, 0.1 ns a byte: on each side, less than "
      "Open MPI and MPICH take. Best flat: the best TuNA, or the direct floor where that is less. "
      "The shared forms send no message inside a node; what changes their times is likely when "
      "ranks leave the barrier before them."};
  return result;
}

}  // namespace
}  // namespace tuna_local

Experiment TunaLocal() {
  return {"tuna-local", "[tuna], not in it",
          "flat against hierarchical algorithms by what messages inside a node cost",
          tuna_local::Run};
}

}  // namespace tutti

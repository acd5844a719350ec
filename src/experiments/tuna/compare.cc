// [tuna] figures 12, 13 and 16: the public algorithms among themselves, ours beside them, and two
// other distributions of block sizes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "registry.h"
#include "tables.h"
#include "tuna.h"

namespace tutti {
namespace tuna_compare {
namespace {

using namespace tuna;

constexpr std::array<const char*, 2> kPlatforms = {"polaris", "fugaku"};

Result<ExperimentResult> RunFigure12(const ExperimentOptions& options) {
  constexpr std::array<int64_t, 3> kSizes = {16, 128, 512};
  const int64_t ranks = RanksUpTo(256, options).back();
  constexpr std::array<Family, 10> kFamilies = {{{"linear", "linear"},
                                                 {"pairwise", "pairwise"},
                                                 {"xor", "xor"},
                                                 {"spread-out", "spread-out"},
                                                 {"scattered:b=1", "scattered:b=1"},
                                                 {"scattered:b=4", "scattered:b=4"},
                                                 {"scattered:b=32", "scattered:b=32"},
                                                 {"scattered:b=128", "scattered:b=128"},
                                                 {"two-phase-bruck", "two-phase-bruck"},
                                                 {"padded-bruck", "padded-bruck"}}};
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.algorithm);
  std::vector<Simulation> simulations;
  for (const char* platform : kPlatforms) {
    const Machine machine{platform, ranks};
    simulations.push_back({machine, Grid(kSizes, names)});
  }
  const Result<std::vector<std::vector<Measured>>> all = SimulateAll(simulations, options);
  if (!all) return tl::unexpected(all.error());
  ExperimentResult result;
  for (size_t i = 0; i < simulations.size(); ++i) {
    ResultTable table{.title = fmt::format("Public algorithms, {}, P = {}", kPlatforms[i], ranks),
                      .label_name = "S (bytes)",
                      .columns = ColumnsOf(kFamilies)};
    Chart chart = ChartOf(table.title, "S (bytes)", kFamilies);
    for (const int64_t size : kSizes) {
      table.rows.push_back({std::to_string(size), CellsOf((*all)[i], size, kFamilies)});
      AddPoints((*all)[i], size, static_cast<double>(size), kFamilies, &chart);
    }
    result.tables.push_back(std::move(table));
    result.charts.push_back(std::move(chart));
  }
  result.notes = {SimulationNote(),
                  "The paper: Open MPI's linear form is slowest, scattered with the best block "
                  "count wins in most cases. In simulation many requests at once cost nothing "
                  "beside their overhead."};
  return result;
}

// Whether what sends P messages a rank, the staggered form too, is simulated beside the others.
bool ManyMessages(int64_t ranks, const ExperimentOptions& options) {
  constexpr int64_t kSeconds = 256;
  return ranks <= kSeconds || options.large;
}

// The staggered form: all messages between nodes at once is its best in simulation.
std::string Staggered(const Machine& machine) {
  constexpr int64_t kRadix = 4;
  return fmt::format("staggered:r={},b={}", std::clamp<int64_t>(machine.RanksPerNode(), 2, kRadix),
                     std::max<int64_t>(1, machine.ranks - machine.RanksPerNode()));
}

Result<ExperimentResult> RunFigure13(const ExperimentOptions& options) {
  constexpr std::array<int64_t, 4> kSizes = {16, 128, 512, 2048};
  constexpr std::array<Family, 8> kFamilies = {{{"tuna", "TuNA"},
                                                {"coalesced", "coalesced"},
                                                {"staggered", "staggered"},
                                                {"shared", "shared"},
                                                {"shared-coalesced", "shared-coalesced"},
                                                {kOneAtATime, "one at a time"},
                                                {kWindow, "32 at once"},
                                                {kAllAtOnce, "all at once"}}};
  const auto algorithms = [&](const Machine& machine, int64_t size) {
    std::vector<std::string> names = TunaOf(FewRadices(machine.ranks));
    for (std::string& name : Hierarchical(machine)) names.push_back(std::move(name));
    if (!ManyMessages(machine.ranks, options)) return names;
    names.push_back(Staggered(machine));
    for (std::string& name : SimulatedBaselines(machine.ranks, size, options))
      names.push_back(std::move(name));
    return names;
  };
  const auto cells = [](std::span<const Measured> all, int64_t size, Floors floors) {
    const double flat = std::min(floors.direct_s, Fastest(all, size, {"tuna"})->seconds);
    const Measured* best =
        Fastest(all, size, {"coalesced", "staggered", "shared", "shared-coalesced"});
    return std::vector<ResultCell>{Word(best->point.algorithm), TimesFaster(best, flat),
                                   TimesFaster(Fastest(all, size, {"coalesced"}), flat),
                                   Ratio(flat, floors.network_s)};
  };
  Result<ExperimentResult> result =
      Compare({.title = "Hierarchical beside flat",
               .platforms = kPlatforms,
               .sizes = kSizes,
               .ranks = RanksUpTo(2048, options),
               .families = kFamilies,
               .algorithms = algorithms,
               .more_columns = {{.name = "best hierarchical"},
                                {.name = "best flat / best hierarchical", .digits = 2},
                                {.name = "best flat / coalesced", .digits = 2},
                                {.name = "best flat / network floor", .digits = 2}},
               .more_cells = cells},
              options);
  if (!result) return result;
  result->notes = {
      SimulationNote(),
      "Each with the best of a few parameters; empty: not simulated (staggered and the three that "
      "send each block by itself have P messages a rank: above P = 256 with --large only). Best "
      "flat: the best TuNA, or the direct floor where "
      "that is less: so the ratios are at most what a simulation of all flat algorithms would "
      "give, too small rather than too large. No algorithm at all can reach a ratio above the "
      "last.",
      FloorNote(),
      "The paper, over the vendors' MPI_Alltoallv: up to 60 times (TuNA), 139 times (coalesced), "
      "12 times (staggered); at P = 16384 on Fugaku coalesced is 42 times faster than it and 14.6 "
      "times faster than scattered at S = 16, 2.2 and 2.1 times at S = 8 KiB. The forms through "
      "memory that the ranks of a node share are not the paper's."};
  return result;
}

Result<ExperimentResult> RunFigure16(const ExperimentOptions& options) {
  constexpr int64_t kSize = 1024;
  constexpr std::array<Family, 7> kFamilies = {{{"tuna", "TuNA"},
                                                {"coalesced", "coalesced"},
                                                {"staggered", "staggered"},
                                                {"shared", "shared"},
                                                {"shared-coalesced", "shared-coalesced"},
                                                {kWindow, "32 at once"},
                                                {kAllAtOnce, "all at once"}}};
  constexpr std::array<const char*, 2> kDistributions = {"normal", "power-law"};
  std::vector<Simulation> simulations;
  const std::vector<int64_t> ladder = RanksUpTo(1024, options);
  for (const char* distribution : kDistributions) {
    for (const int64_t ranks : ladder) {
      const Machine machine{"fugaku", ranks};
      std::vector<std::string> names = TunaOf(FewRadices(ranks));
      for (std::string& name : Hierarchical(machine)) names.push_back(std::move(name));
      if (ManyMessages(ranks, options)) names.push_back(Staggered(machine));
      for (std::string& name : SimulatedBaselines(ranks, kSize, options))
        if (name != kOneAtATime) names.push_back(std::move(name));
      simulations.push_back({machine, Grid(std::array{kSize}, names, distribution)});
    }
  }
  const Result<std::vector<std::vector<Measured>>> all = SimulateAll(simulations, options);
  if (!all) return tl::unexpected(all.error());
  ExperimentResult result;
  for (size_t d = 0; d < kDistributions.size(); ++d) {
    ResultTable table{.title = fmt::format("Blocks of up to about {} bytes, {}, fugaku", kSize,
                                           kDistributions[d]),
                      .label_name = "P",
                      .columns = ColumnsOf(kFamilies)};
    Chart chart = ChartOf(fmt::format("{} blocks", kDistributions[d]), "ranks P", kFamilies);
    for (size_t i = 0; i < ladder.size(); ++i) {
      const std::vector<Measured>& measured = (*all)[d * ladder.size() + i];
      table.rows.push_back({std::to_string(ladder[i]), CellsOf(measured, kSize, kFamilies)});
      AddPoints(measured, kSize, static_cast<double>(ladder[i]), kFamilies, &chart);
    }
    result.tables.push_back(std::move(table));
    result.charts.push_back(std::move(chart));
  }
  result.notes = {
      SimulationNote(),
      "Normal: mean 1000, standard deviation 240 bytes. Power law: exponent 0.95 between 1 "
      "and 1024 bytes, whole FP64 values, so that most blocks are empty. The paper, normal, "
      "P = 4096: TuNA 3.21, coalesced 3.63, staggered 1.57 times faster than "
      "MPI_Alltoallv."};
  return result;
}

}  // namespace
}  // namespace tuna_compare

Experiment TunaFigure12() {
  return {"tuna-fig12", "[tuna] figure 12", "the public all-to-all-v algorithms, in simulation",
          tuna_compare::RunFigure12};
}
Experiment TunaFigure13() {
  return {"tuna-fig13", "[tuna] figure 13", "hierarchical forms beside flat ones, in simulation",
          tuna_compare::RunFigure13};
}
Experiment TunaFigure16() {
  return {"tuna-fig16", "[tuna] figure 16", "normal and power-law distributions of block sizes",
          tuna_compare::RunFigure16};
}

}  // namespace tutti

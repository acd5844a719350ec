// [tuna] figures 7, 8 and 9: what the radix of TuNA does, and where it beats what programs have.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "registry.h"
#include "tables.h"
#include "tuna.h"

namespace tutti {
namespace tuna_radix {
namespace {

using namespace tuna;

constexpr std::array<const char*, 2> kPlatforms = {"polaris", "fugaku"};
constexpr std::array<int64_t, 4> kSizes = {16, 512, 2048, 8192};
constexpr int64_t kLargest = 2048;

std::string Titled(const Machine& machine) {
  return fmt::format("{}, P = {}", machine.platform, machine.ranks);
}

// Powers of 2 and P, but for those whose messages take minutes to simulate.
std::vector<int64_t> SimulatedRadices(int64_t ranks, const ExperimentOptions& options) {
  constexpr int64_t kMessages = 270'000;
  std::vector<int64_t> radices = Radices(ranks);
  if (!options.large)
    std::erase_if(radices,
                  [&](int64_t radix) { return ranks * MessagesOfTuna(ranks, radix) > kMessages; });
  return radices;
}

std::vector<int64_t> SizesThatFit(int64_t ranks, const ExperimentOptions& options) {
  std::vector<int64_t> sizes(kSizes.begin(), kSizes.end());
  std::erase_if(sizes, [&](int64_t size) { return !FitsMemory(ranks, size, options); });
  return sizes;
}

const Measured* At(const std::vector<Measured>& all, int64_t size, int64_t radix) {
  return Fastest(all, size, {fmt::format("tuna:r={}", radix)});
}

std::string RadixOf(const Measured& measured) { return ParametersOf(measured).substr(2); }

Result<ExperimentResult> RunFigure7(const ExperimentOptions& options) {
  ExperimentResult result;
  for (const char* platform : kPlatforms) {
    std::vector<Simulation> simulations;
    for (const int64_t ranks : RanksUpTo(kLargest, options)) {
      const Machine machine{platform, ranks};
      simulations.push_back(
          {machine, Grid(SizesThatFit(ranks, options), TunaOf(SimulatedRadices(ranks, options)))});
    }
    const Result<std::vector<std::vector<Measured>>> all = SimulateAll(simulations, options);
    if (!all) return tl::unexpected(all.error());
    ResultTable trends{.title = fmt::format("The best radix by size and ranks, {}", platform),
                       .label_name = "S (bytes)",
                       .columns = {}};
    for (const int64_t size : kSizes) trends.rows.push_back({std::to_string(size), {}});
    for (size_t i = 0; i < simulations.size(); ++i) {
      const Machine& machine = simulations[i].machine;
      const std::vector<int64_t> radices = SimulatedRadices(machine.ranks, options);
      ResultTable table{.title = fmt::format("TuNA by radix, {}", Titled(machine)),
                        .label_name = "S (bytes)",
                        .columns = {}};
      for (const int64_t radix : radices)
        table.columns.push_back({.name = fmt::format("r = {}", radix), .unit = "us", .digits = 1});
      Chart chart{.title = Titled(machine),
                  .x_label = "radix r",
                  .y_label = "time / that of the best radix",
                  .log_x = true,
                  .log_y = true};
      trends.columns.push_back({.name = fmt::format("P = {}", machine.ranks)});
      for (size_t s = 0; s < kSizes.size(); ++s) {
        const int64_t size = kSizes[s];
        if (!FitsMemory(machine.ranks, size, options)) {
          trends.rows[s].cells.push_back(Word(""));
          continue;
        }
        ResultRow row{.label = std::to_string(size), .cells = {}};
        ChartSeries series{.name = fmt::format("S = {}", size)};
        const Measured* best = Fastest((*all)[i], size, {"tuna"});
        for (const int64_t radix : radices) {
          const double seconds = At((*all)[i], size, radix)->seconds;
          row.cells.push_back(Microseconds(seconds));
          series.points.emplace_back(radix, seconds / best->seconds);
        }
        table.rows.push_back(std::move(row));
        chart.series.push_back(std::move(series));
        // r = P sends as many messages as all at once does, in the time of its floor at best.
        const Result<double> floor = DirectFloor(machine, size);
        if (!floor) return tl::unexpected(floor.error());
        const bool all_seen = radices.back() == machine.ranks;
        trends.rows[s].cells.push_back(
            Word(all_seen || best->seconds < *floor ? RadixOf(*best)
                 : best->point.algorithm == fmt::format("tuna:r={}", radices.back())
                     ? fmt::format("above {}", radices.back())
                     : RadixOf(*best) + " or P"));
      }
      result.tables.push_back(std::move(table));
      result.charts.push_back(std::move(chart));
    }
    result.tables.push_back(std::move(trends));
  }
  result.notes = {
      SimulationNote(),
      "The paper (P = 2048): up to S = 512 the time grows with the radix, from 512 to 8 KiB it has "
      "a minimum near the square root of P, above it falls. Radices with more than 270,000 "
      "messages of all ranks are simulated with --large only. \"or P\": r = P was not simulated, "
      "and its floor (figure 8) is below the best of those that were."};
  return result;
}

Result<ExperimentResult> RunFigure8(const ExperimentOptions& options) {
  constexpr std::array<int64_t, 4> kCompared = {16, 128, 512, 2048};
  constexpr std::array<Family, 4> kBeside = {{{"tuna", "TuNA, best radix"},
                                              {kOneAtATime, "one at a time"},
                                              {kWindow, "32 at once"},
                                              {kAllAtOnce, "all at once"}}};
  const auto algorithms = [&](const Machine& machine, int64_t size) {
    std::vector<std::string> names = TunaOf(FewRadices(machine.ranks));
    for (std::string& name : SimulatedBaselines(machine.ranks, size, options)) {
      // The same messages.
      if (name == kAllAtOnce) names.push_back(fmt::format("tuna:r={}", machine.ranks));
      names.push_back(std::move(name));
    }
    return names;
  };
  const auto cells = [](std::span<const Measured> all, int64_t size, Floors floors) {
    const Measured* best = Fastest(all, size, {"tuna"});
    std::vector<ResultCell> ours = {Word(RadixOf(*best))};
    for (const std::string_view name : {kOneAtATime, kWindow, kAllAtOnce}) {
      const Measured* other = Fastest(all, size, {name});
      ours.push_back(other == nullptr ? Word("") : Ratio(other->seconds, best->seconds));
    }
    ours.push_back(Ratio(floors.direct_s, best->seconds));
    return ours;
  };
  Result<ExperimentResult> result =
      Compare({.title = "TuNA and what programs have",
               .platforms = kPlatforms,
               .sizes = kCompared,
               .ranks = RanksUpTo(kLargest, options),
               .families = kBeside,
               .algorithms = algorithms,
               .more_columns = {{.name = "best radix"},
                                {.name = "one at a time / TuNA", .digits = 2},
                                {.name = "32 at once / TuNA", .digits = 2},
                                {.name = "all at once / TuNA", .digits = 2},
                                {.name = "direct floor / TuNA", .digits = 2}},
               .more_cells = cells},
              options);
  if (!result) return result;
  result->notes = {
      SimulationNote(),
      "The paper compares with the vendors' MPI_Alltoallv, which are not public: 29 times at P = "
      "8192, S = 16 on Polaris, 70 times on Fugaku, 5.6 and 7.3 times at S = 1024. Here stand the "
      "three forms of the public ones: pairwise (Open MPI), at most 32 requests at once (MPICH), "
      "all requests at once. SMPI does not model what makes many requests at once slow on real "
      "machines (long matching queues, congested switches), so the last is close to ideal.",
      FloorNote(),
      "Where TuNA with r = P was not simulated, a ratio to the direct floor below 1 says that it "
      "may be better than the radices shown."};
  return result;
}

Result<ExperimentResult> RunFigure9(const ExperimentOptions& options) {
  constexpr std::array<int64_t, 4> kCompared = {16, 128, 512, 2048};
  ExperimentResult result{.charts_a_row = 2};
  std::vector<Simulation> simulations;
  for (const char* platform : kPlatforms) {
    for (const int64_t ranks : RanksUpTo(512, options)) {
      std::vector<std::string> names = TunaOf(SimulatedRadices(ranks, options));
      names.emplace_back(kWindow);
      const Machine machine{platform, ranks};
      simulations.push_back({machine, Grid(kCompared, names)});
    }
  }
  const Result<std::vector<std::vector<Measured>>> all = SimulateAll(simulations, options);
  if (!all) return tl::unexpected(all.error());
  for (size_t i = 0; i < simulations.size(); ++i) {
    const Machine& machine = simulations[i].machine;
    const std::vector<int64_t> radices = SimulatedRadices(machine.ranks, options);
    ResultTable table{
        .title = fmt::format("How much faster than 32 at once, by radix, {}", Titled(machine)),
        .label_name = "S (bytes)",
        .columns = {}};
    HeatMap heat{.columns = static_cast<int32_t>(radices.size()),
                 .cells = {},
                 .column_names = {},
                 .row_names = {}};
    for (const int64_t radix : radices)
      table.columns.push_back({.name = fmt::format("r = {}", radix), .digits = 2});
    table.columns.push_back({.name = "radices that win"});
    double largest = 1;
    std::vector<double> speed_ups;
    for (const int64_t size : kCompared) {
      const double other = Fastest((*all)[i], size, {kWindow})->seconds;
      ResultRow row{.label = std::to_string(size), .cells = {}};
      std::vector<int64_t> winning;
      for (const int64_t radix : radices) {
        const double own = At((*all)[i], size, radix)->seconds;
        row.cells.push_back(Ratio(other, own));
        speed_ups.push_back(other / own);
        largest = std::max(largest, other / own);
        if (own < other) winning.push_back(radix);
      }
      row.cells.push_back(Word(
          winning.empty() ? "none" : fmt::format("{} to {}", winning.front(), winning.back())));
      table.rows.push_back(std::move(row));
    }
    // White where TuNA is slower.
    for (const double speed_up : speed_ups)
      heat.cells.push_back(speed_up <= 1 ? std::nullopt
                                         : std::optional(std::log(speed_up) / std::log(largest)));
    for (const int64_t radix : radices) heat.column_names.push_back(std::to_string(radix));
    for (const int64_t size : kCompared) heat.row_names.push_back(std::to_string(size));
    heat.low = "as fast";
    heat.high = "as many times faster as its title says (white: slower)";
    result.tables.push_back(std::move(table));
    result.charts.push_back(
        {.title = fmt::format("{}: most {:.1f} times", Titled(machine), largest),
         .x_label = "radix r",
         .y_label = "S (bytes)",
         .heat = std::move(heat)});
  }
  result.notes = {SimulationNote(),
                  "The paper draws the range of radices in which TuNA beats MPI_Alltoallv for each "
                  "P and S; here against at most 32 requests at once, white where it does not."};
  return result;
}

}  // namespace
}  // namespace tuna_radix

Experiment TunaFigure7() {
  return {"tuna-fig7", "[tuna] figure 7", "TuNA by radix: three trends, in simulation",
          tuna_radix::RunFigure7};
}
Experiment TunaFigure8() {
  return {"tuna-fig8", "[tuna] figure 8",
          "TuNA against what MPI programs have, window-limited and all at once, in simulation",
          tuna_radix::RunFigure8};
}
Experiment TunaFigure9() {
  return {"tuna-fig9", "[tuna] figure 9", "radices with which TuNA wins, as heat maps",
          tuna_radix::RunFigure9};
}

}  // namespace tutti

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
#include "tuna.h"

namespace tutti {
namespace {

using namespace tuna;

constexpr std::array<const char*, 2> kPlatforms = {"polaris", "fugaku"};
constexpr std::array<int64_t, 4> kSizes = {16, 512, 2048, 8192};
constexpr int64_t kLargest = 2048;

std::string Titled(const Machine& machine) {
  return fmt::format("{}, P = {}", machine.platform, machine.ranks);
}

// Messages of a rank: the rounds of TuNA, each with a non-zero digit in one place.
int64_t RoundsOf(int64_t ranks, int64_t radix) {
  int64_t rounds = 0;
  for (int64_t step = 1; step < ranks; step *= radix)
    rounds += std::min(radix - 1, (ranks - 1) / step);
  return rounds;
}

// Powers of 2 and P, but for those whose messages take minutes to simulate.
std::vector<int64_t> SimulatedRadices(int64_t ranks, const ExperimentOptions& options) {
  constexpr int64_t kMessages = 270'000;
  std::vector<int64_t> radices = Radices(ranks);
  if (!options.large)
    std::erase_if(radices,
                  [&](int64_t radix) { return ranks * RoundsOf(ranks, radix) > kMessages; });
  return radices;
}

const Measured* At(const std::vector<Measured>& all, int64_t size, int64_t radix) {
  return Fastest(all, size, {fmt::format("tuna:r={}", radix)});
}

std::string RadixOf(const Measured& measured) { return ParametersOf(measured).substr(2); }

Result<ExperimentResult> RunFigure7(const ExperimentOptions& options) {
  ExperimentResult result;
  for (const char* platform : kPlatforms) {
    std::vector<Simulation> simulations;
    for (const int64_t ranks : RanksUpTo(kLargest, options))
      simulations.push_back(
          {{platform, ranks}, Grid(kSizes, TunaOf(SimulatedRadices(ranks, options)))});
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

constexpr std::array<Family, 4> kBeside = {{{"tuna", "TuNA, best radix"},
                                            {kOneAtATime, "one at a time"},
                                            {kWindow, "32 at once"},
                                            {kAllAtOnce, "all at once"}}};

Result<ExperimentResult> RunFigure8(const ExperimentOptions& options) {
  ExperimentResult result;
  for (const char* platform : kPlatforms) {
    std::vector<Simulation> simulations;
    for (const int64_t ranks : RanksUpTo(kLargest, options)) {
      std::vector<Point> points;
      for (const int64_t size : kSizes) {
        std::vector<std::string> names = TunaOf(FewRadices(ranks));
        if (SimulatesBaselines(ranks, size, options)) {
          names.emplace_back(kWindow);
          names.emplace_back(kAllAtOnce);
          if (ranks < 1024) names.push_back(fmt::format("tuna:r={}", ranks));
          if (ranks <= 256) names.emplace_back(kOneAtATime);
        }
        const std::vector<Point> more = Grid(std::array{size}, names);
        points.insert(points.end(), more.begin(), more.end());
      }
      simulations.push_back({{platform, ranks}, std::move(points)});
    }
    const Result<std::vector<std::vector<Measured>>> all = SimulateAll(simulations, options);
    if (!all) return tl::unexpected(all.error());
    ResultTable table{.title = fmt::format("TuNA and what programs have, {}", platform),
                      .label_name = "S (bytes), P",
                      .columns = ColumnsOf(kBeside)};
    table.columns.insert(table.columns.begin() + 1, {.name = "its radix"});
    table.columns.push_back({.name = "floor", .unit = "us", .digits = 1});
    table.columns.push_back({.name = "32 at once / TuNA", .digits = 2});
    table.columns.push_back({.name = "all at once / TuNA", .digits = 2});
    table.columns.push_back({.name = "floor / TuNA", .digits = 2});
    for (const int64_t size : kSizes) {
      Chart chart = ChartOf(fmt::format("{}, S = {}", platform, size), "ranks P", kBeside);
      chart.series.push_back({.name = "floor", .grey = true});
      for (size_t i = 0; i < simulations.size(); ++i) {
        const Machine& machine = simulations[i].machine;
        const std::vector<Measured>& measured = (*all)[i];
        const Result<double> floor = DirectFloor(machine, size);
        if (!floor) return tl::unexpected(floor.error());
        const Measured* best = Fastest(measured, size, {"tuna"});
        const auto over = [&](std::string_view name) {
          const Measured* other = Fastest(measured, size, {name});
          return other == nullptr ? Word("") : Ratio(other->seconds, best->seconds);
        };
        ResultRow row{.label = fmt::format("{}, {}", size, machine.ranks),
                      .cells = CellsOf(measured, size, kBeside)};
        row.cells.insert(row.cells.begin() + 1, Word(RadixOf(*best)));
        row.cells.push_back(Microseconds(*floor));
        row.cells.push_back(over(kWindow));
        row.cells.push_back(over(kAllAtOnce));
        row.cells.push_back(Ratio(*floor, best->seconds));
        table.rows.push_back(std::move(row));
        AddPoints(measured, size, static_cast<double>(machine.ranks), kBeside, &chart);
        chart.series.back().points.emplace_back(static_cast<double>(machine.ranks), *floor * 1e6);
      }
      std::erase_if(chart.series, [](const ChartSeries& series) { return series.points.empty(); });
      result.charts.push_back(std::move(chart));
    }
    result.tables.push_back(std::move(table));
  }
  result.notes = {
      SimulationNote(),
      "The paper compares with the vendors' MPI_Alltoallv, which are not public: 29 times at P = "
      "8192, S = 16 on Polaris, 70 times on Fugaku, 5.6 and 7.3 times at S = 1024. Here stand the "
      "three forms of the public ones: pairwise (Open MPI; up to P = 256), at most 32 requests "
      "at once (MPICH), all requests at once. SMPI does not model what makes many requests at once "
      "slow on real machines (long matching queues, congested switches), so the last is close to "
      "ideal.",
      "The floor: overheads of the messages and the gap of the bytes that a rank sends and "
      "receives on average. No algorithm that sends each block as a message of its own is faster, "
      "in a window or at once; where the two were not simulated (empty: half an hour each) it "
      "stands for them, and where TuNA with r = P was not, for that as well: then a ratio below 1 "
      "says that r = P is better than the radices shown."};
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
      simulations.push_back({{platform, ranks}, Grid(kCompared, names)});
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
    HeatMap heat{.columns = static_cast<int32_t>(radices.size()), .cells = {}};
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
    // Black where TuNA is slower.
    for (const double speed_up : speed_ups)
      heat.cells.push_back(speed_up <= 1 ? std::nullopt
                                         : std::optional(std::log(speed_up) / std::log(largest)));
    result.tables.push_back(std::move(table));
    result.charts.push_back(
        {.title = fmt::format("{}: most {:.1f} times", Titled(machine), largest),
         .x_label = fmt::format("radix, 2 to {}", radices.back()),
         .y_label = "S, 16 bytes above, 2048 below",
         .heat = std::move(heat)});
  }
  result.notes = {SimulationNote(),
                  "The paper draws the range of radices in which TuNA beats MPI_Alltoallv for each "
                  "P and S; here against at most 32 requests at once, black where it does not."};
  return result;
}

}  // namespace

Experiment TunaFigure7() {
  return {"tuna-fig7", "[tuna] figure 7", "TuNA by radix: three trends, in simulation", RunFigure7};
}
Experiment TunaFigure8() {
  return {"tuna-fig8", "[tuna] figure 8",
          "TuNA against what MPI programs have, window-limited and all at once, in simulation",
          RunFigure8};
}
Experiment TunaFigure9() {
  return {"tuna-fig9", "[tuna] figure 9", "radices with which TuNA wins, as heat maps", RunFigure9};
}

}  // namespace tutti

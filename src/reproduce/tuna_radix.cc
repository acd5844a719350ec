// [tuna] figures 7, 8 and 9: what the radix of TuNA does, and where it beats what programs have.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "registry.h"
#include "tuna.h"

namespace tutti {
namespace {

using namespace tuna;

constexpr std::array<const char*, 2> kPlatforms = {"polaris", "fugaku"};
constexpr std::array<int64_t, 5> kSizes = {16, 128, 512, 2048, 8192};
// Larger ones of the baselines take minutes to simulate.
constexpr std::array<int64_t, 3> kComparedSizes = {16, 128, 512};

std::string Titled(const char* platform, int64_t ranks) {
  return fmt::format("{}, P = {}", platform, ranks);
}

struct Sweep {
  std::vector<int64_t> radices;
  std::vector<Measured> measured;

  const Measured* At(int64_t size, int64_t radix) const {
    const std::string name = fmt::format("tuna:r={}", radix);
    for (const Measured& each : measured)
      if (each.point.size == size && each.point.algorithm == name) return &each;
    return nullptr;
  }
};

Result<Sweep> RunSweep(const char* platform, int64_t ranks, bool baselines) {
  Sweep sweep{.radices = Radices(ranks), .measured = {}};
  std::vector<std::string> algorithms = TunaOf(sweep.radices);
  if (baselines)
    for (const std::string_view name : {kAllAtOnce, kWindow, kOneAtATime})
      algorithms.emplace_back(name);
  Result<std::vector<Measured>> measured =
      Simulate({platform, ranks},
               Grid(baselines ? std::span<const int64_t>(kComparedSizes) : kSizes, algorithms));
  if (!measured) return tl::unexpected(measured.error());
  sweep.measured = *std::move(measured);
  return sweep;
}

Result<ExperimentResult> RunFigure7(const ExperimentOptions& options) {
  const int64_t ranks = RanksFor(options);
  ExperimentResult result{.charts_a_row = 2};
  for (const char* platform : kPlatforms) {
    const Result<Sweep> sweep = RunSweep(platform, ranks, false);
    if (!sweep) return tl::unexpected(sweep.error());
    ResultTable table{.title = fmt::format("TuNA by radix, {}", Titled(platform, ranks)),
                      .label_name = "S (bytes)",
                      .columns = {}};
    for (const int64_t radix : sweep->radices)
      table.columns.push_back({.name = fmt::format("r = {}", radix), .unit = "us", .digits = 1});
    table.columns.push_back({.name = "best r"});
    Chart chart{
        .title = fmt::format("TuNA, {}: time over that of the best radix", Titled(platform, ranks)),
        .x_label = "radix r",
        .y_label = "time / best",
        .log_x = true,
        .log_y = true};
    for (const int64_t size : kSizes) {
      ResultRow row{.label = std::to_string(size), .cells = {}};
      ChartSeries series{.name = fmt::format("S = {}", size)};
      const Measured* best = Fastest(sweep->measured, size, {"tuna"});
      for (const int64_t radix : sweep->radices) {
        const double seconds = sweep->At(size, radix)->seconds;
        row.cells.push_back(Microseconds(seconds));
        series.points.emplace_back(radix, seconds / best->seconds);
      }
      row.cells.push_back(Word(best->point.algorithm.substr(std::string("tuna:r=").size())));
      table.rows.push_back(std::move(row));
      chart.series.push_back(std::move(series));
    }
    result.tables.push_back(std::move(table));
    result.charts.push_back(std::move(chart));
  }
  result.notes = {SimulationNote(ranks),
                  "The paper (P = 2048): up to S = 512 the time grows with the radix, from 512 to "
                  "8 KiB it has a minimum near the square root of P, above it falls."};
  return result;
}

Result<ExperimentResult> RunFigure8(const ExperimentOptions& options) {
  const int64_t ranks = RanksFor(options);
  ExperimentResult result{.charts_a_row = 2};
  for (const char* platform : kPlatforms) {
    const Result<Sweep> sweep = RunSweep(platform, ranks, true);
    if (!sweep) return tl::unexpected(sweep.error());
    ResultTable table{
        .title = fmt::format("TuNA and what programs have, {}", Titled(platform, ranks)),
        .label_name = "S (bytes)",
        .columns = {{.name = "TuNA, best radix", .unit = "us", .digits = 1},
                    {.name = "its radix"},
                    {.name = "TuNA, worst radix", .unit = "us", .digits = 1},
                    {.name = "one at a time", .unit = "us", .digits = 1},
                    {.name = "32 at once", .unit = "us", .digits = 1},
                    {.name = "all at once", .unit = "us", .digits = 1},
                    {.name = "speed-up over one at a time", .digits = 2},
                    {.name = "over 32 at once", .digits = 2},
                    {.name = "over all at once", .digits = 2}}};
    Chart chart{.title = Titled(platform, ranks),
                .x_label = "S (bytes)",
                .y_label = "microseconds",
                .log_x = true,
                .log_y = true};
    std::array<ChartSeries, 4> series;
    const std::array<const char*, 4> names = {"TuNA, best radix", "one at a time", "32 at once",
                                              "all at once"};
    for (size_t i = 0; i < names.size(); ++i) series[i].name = names[i];
    for (const int64_t size : kComparedSizes) {
      const Measured* best = Fastest(sweep->measured, size, {"tuna"});
      const std::array<double, 4> times = {best->seconds,
                                           Fastest(sweep->measured, size, {kOneAtATime})->seconds,
                                           Fastest(sweep->measured, size, {kWindow})->seconds,
                                           Fastest(sweep->measured, size, {kAllAtOnce})->seconds};
      table.rows.push_back(
          {std::to_string(size),
           {Microseconds(best->seconds),
            Word(best->point.algorithm.substr(std::string("tuna:r=").size())),
            Microseconds(Slowest(sweep->measured, size, "tuna")->seconds), Microseconds(times[1]),
            Microseconds(times[2]), Microseconds(times[3]), Ratio(times[1], times[0]),
            Ratio(times[2], times[0]), Ratio(times[3], times[0])}});
      for (size_t i = 0; i < times.size(); ++i)
        series[i].points.emplace_back(static_cast<double>(size), times[i] * 1e6);
    }
    for (ChartSeries& one : series) chart.series.push_back(std::move(one));
    result.tables.push_back(std::move(table));
    result.charts.push_back(std::move(chart));
  }
  result.notes = {
      SimulationNote(ranks),
      "The paper compares with the vendors' MPI_Alltoallv, which are not public: 29 times at P = "
      "8192, S = 16 on Polaris, 70 times on Fugaku, 5.6 and 7.3 times at S = 1024. Here stand the "
      "three forms of the public ones: pairwise (Open MPI), at most 32 requests at once (MPICH), "
      "all requests at once. SMPI does not model what makes many requests at once slow on real "
      "machines (long matching queues, congested switches), so the last is close to ideal."};
  return result;
}

Result<ExperimentResult> RunFigure9(const ExperimentOptions& options) {
  const int64_t ranks = RanksFor(options);
  ExperimentResult result{.charts_a_row = 2};
  for (const char* platform : kPlatforms) {
    const Result<Sweep> sweep = RunSweep(platform, ranks, true);
    if (!sweep) return tl::unexpected(sweep.error());
    ResultTable table{.title = fmt::format("Speed-up of TuNA over 32 requests at once, {}",
                                           Titled(platform, ranks)),
                      .label_name = "S (bytes)",
                      .columns = {}};
    HeatMap heat{.columns = static_cast<int32_t>(sweep->radices.size()), .cells = {}};
    for (const int64_t radix : sweep->radices)
      table.columns.push_back({.name = fmt::format("r = {}", radix), .digits = 2});
    table.columns.push_back({.name = "radices that win"});
    double largest = 1;
    std::vector<double> speed_ups;
    for (const int64_t size : kComparedSizes) {
      const double other = Fastest(sweep->measured, size, {kWindow})->seconds;
      ResultRow row{.label = std::to_string(size), .cells = {}};
      std::vector<int64_t> winning;
      for (const int64_t radix : sweep->radices) {
        const double own = sweep->At(size, radix)->seconds;
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
        {.title = fmt::format("{}: darkest {:.1f} times", Titled(platform, ranks), largest),
         .x_label = "radix, 2 to P in powers of 2",
         .y_label = "S, 16 bytes above, 512 below",
         .heat = std::move(heat)});
  }
  result.notes = {SimulationNote(ranks),
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

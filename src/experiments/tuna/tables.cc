#include "tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tutti/base/rational.h"

namespace tutti::tuna {
namespace {

// "tuna" is the method of "tuna:r=4"; "scattered:b=32" just itself.
bool IsOf(std::string_view algorithm, std::string_view name) {
  return algorithm.starts_with(name) &&
         (algorithm.size() == name.size() || algorithm[name.size()] == ':');
}

}  // namespace

const Measured* Fastest(std::span<const Measured> all, int64_t size,
                        const std::vector<std::string_view>& names) {
  const Measured* best = nullptr;
  for (const Measured& each : all) {
    if (each.point.size != size) continue;
    const bool named = std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return IsOf(each.point.algorithm, name);
    });
    if (named && (best == nullptr || each.seconds < best->seconds)) best = &each;
  }
  return best;
}

std::string ParametersOf(const Measured& measured) {
  const size_t colon = measured.point.algorithm.find(':');
  return colon == std::string::npos ? "" : measured.point.algorithm.substr(colon + 1);
}

ResultCell Microseconds(double seconds, std::string paper) {
  return Figure(Rational(std::llround(seconds * 1e9), 1000), std::move(paper));
}

ResultCell Ratio(double a, double b, std::string paper) {
  return Figure(Rational(std::llround(a * 1e12), std::max<int64_t>(1, std::llround(b * 1e12))),
                std::move(paper));
}

ResultCell TimesFaster(const Measured* measured, double than_s) {
  return measured == nullptr ? Word("") : Ratio(than_s, measured->seconds);
}

std::vector<ResultCell> CellsOf(std::span<const Measured> all, int64_t size,
                                std::span<const Family> families) {
  std::vector<ResultCell> cells;
  for (const Family& family : families) {
    const Measured* best = Fastest(all, size, {family.algorithm});
    cells.push_back(best == nullptr ? Word("") : Microseconds(best->seconds));
  }
  return cells;
}

std::vector<ResultColumn> ColumnsOf(std::span<const Family> families) {
  std::vector<ResultColumn> columns;
  for (const Family& family : families)
    columns.push_back({.name = family.name, .unit = "us", .digits = 1});
  return columns;
}

Chart ChartOf(std::string title, std::string x_label, std::span<const Family> families) {
  Chart chart{.title = std::move(title),
              .x_label = std::move(x_label),
              .y_label = "microseconds",
              .log_x = true,
              .log_y = true};
  for (const Family& family : families) chart.series.push_back({.name = family.name});
  return chart;
}

void AddPoints(std::span<const Measured> all, int64_t size, double x,
               std::span<const Family> families, Chart* chart) {
  for (size_t k = 0; k < families.size(); ++k)
    if (const Measured* best = Fastest(all, size, {families[k].algorithm}))
      chart->series[k].points.emplace_back(x, best->seconds * 1e6);
}

Result<ExperimentResult> Compare(const Comparison& comparison, const ExperimentOptions& options) {
  std::vector<Simulation> simulations;
  for (const char* platform : comparison.platforms) {
    for (const int64_t ranks : comparison.ranks) {
      Simulation simulation{{platform, ranks}, {}};
      for (const int64_t size : comparison.sizes) {
        if (!FitsMemory(ranks, size, options)) continue;
        std::vector<std::string> names = comparison.algorithms(simulation.machine, size);
        names.emplace_back(kNetworkFloor);
        for (Point& point : Grid({&size, 1}, names)) simulation.points.push_back(std::move(point));
      }
      simulations.push_back(std::move(simulation));
    }
  }
  const Result<std::vector<std::vector<Measured>>> all = SimulateAll(simulations, options);
  if (!all) return tl::unexpected(all.error());

  ExperimentResult result;
  const std::span<const Family> families = comparison.families;
  for (const char* platform : comparison.platforms) {
    ResultTable table{.title = fmt::format("{}, {}", comparison.title, platform),
                      .label_name = "S (bytes), P",
                      .columns = ColumnsOf(families)};
    table.columns.push_back({.name = "floor, direct", .unit = "us", .digits = 1});
    table.columns.push_back({.name = "floor, network", .unit = "us", .digits = 2});
    table.columns.insert(table.columns.end(), comparison.more_columns.begin(),
                         comparison.more_columns.end());
    for (const int64_t size : comparison.sizes) {
      Chart chart = ChartOf(fmt::format("{}, S = {}", platform, size), "ranks P", families);
      ChartSeries direct{.name = "floor, direct", .grey = true};
      for (size_t i = 0; i < simulations.size(); ++i) {
        const Machine& machine = simulations[i].machine;
        const std::vector<Measured>& measured = (*all)[i];
        const Measured* network = Fastest(measured, size, {kNetworkFloor});
        if (machine.platform != platform || network == nullptr) continue;
        const Result<double> direct_s = DirectFloor(machine, size);
        if (!direct_s) return tl::unexpected(direct_s.error());
        const Floors floors{std::max(*direct_s, network->seconds), network->seconds};
        ResultRow row{.label = fmt::format("{}, {}", size, machine.ranks),
                      .cells = CellsOf(measured, size, families)};
        row.cells.push_back(Microseconds(floors.direct_s));
        row.cells.push_back(Microseconds(floors.network_s));
        for (ResultCell& cell : comparison.more_cells(measured, size, floors))
          row.cells.push_back(std::move(cell));
        table.rows.push_back(std::move(row));
        const auto x = static_cast<double>(machine.ranks);
        AddPoints(measured, size, x, families, &chart);
        direct.points.emplace_back(x, floors.direct_s * 1e6);
      }
      chart.series.push_back(std::move(direct));
      std::erase_if(chart.series, [](const ChartSeries& series) { return series.points.empty(); });
      if (!chart.series.empty()) result.charts.push_back(std::move(chart));
    }
    result.tables.push_back(std::move(table));
  }
  return result;
}

std::string FloorNote() {
  return "Floors. Direct: no algorithm that sends each block as a message of its own takes less, "
         "one at a time, in a window or at once, TuNA with r = P among them: the overheads of the "
         "messages and the gap of the bytes that a rank sends and receives on average, or the "
         "network's floor where that is more. It stands for what was not simulated (empty cells: "
         "over half an hour each). Network: no algorithm at all takes less than the busiest link "
         "for the bytes that go between nodes, each once along its route.";
}

}  // namespace tutti::tuna

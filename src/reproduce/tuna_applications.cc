// [tuna] figures 14 and 15: what all-to-all-v takes of two applications.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "registry.h"
#include "tuna.h"

namespace tutti {
namespace {

using namespace tuna;

// What an application exchanges: `times` all-to-all-v of this distribution.
struct Pattern {
  const char* name;
  const char* distribution;
  int64_t size;
  int64_t times;
};

Result<ExperimentResult> Run(const std::vector<const char*>& platforms,
                             std::span<const Pattern> patterns, const ExperimentOptions& options) {
  const int64_t ranks = RanksFor(options);
  ExperimentResult result{.charts_a_row = 2};
  for (const char* platform : platforms) {
    const Machine machine{platform, ranks};
    const int64_t inside = machine.RanksANode();
    std::vector<std::string> names = TunaOf(Radices(ranks));
    for (const int64_t radix : Radices(inside))
      names.push_back(
          fmt::format("coalesced:r={},b={}", radix, std::max<int64_t>(1, ranks / inside - 1)));
    for (const std::string_view name : {kOneAtATime, kWindow, kAllAtOnce}) names.emplace_back(name);
    ResultTable table{
        .title = fmt::format("All exchanges of the application, {}, P = {}", platform, ranks),
        .label_name = "application",
        .columns = {{.name = "TuNA", .unit = "us", .digits = 1},
                    {.name = "coalesced", .unit = "us", .digits = 1},
                    {.name = "one at a time", .unit = "us", .digits = 1},
                    {.name = "32 at once", .unit = "us", .digits = 1},
                    {.name = "all at once", .unit = "us", .digits = 1},
                    {.name = "best of ours over 32 at once", .digits = 2},
                    {.name = "over all at once", .digits = 2}}};
    const std::array<std::string_view, 5> families = {"tuna", "coalesced", kOneAtATime, kWindow,
                                                      kAllAtOnce};
    Chart chart{.title = fmt::format("{}, P = {}", platform, ranks),
                .x_label = "",
                .y_label = "microseconds"};
    for (const Pattern& pattern : patterns) {
      const Result<std::vector<Measured>> all =
          Simulate(machine, Grid(std::array{pattern.size}, names, pattern.distribution));
      if (!all) return tl::unexpected(all.error());
      ResultRow row{.label = pattern.name, .cells = {}};
      std::array<double, 5> seconds{};
      ChartSeries series{.name = pattern.name};
      for (size_t k = 0; k < families.size(); ++k) {
        seconds[k] = static_cast<double>(pattern.times) *
                     Fastest(*all, pattern.size, {families[k]})->seconds;
        row.cells.push_back(Microseconds(seconds[k]));
        series.points.emplace_back(static_cast<double>(k), seconds[k] * 1e6);
      }
      const double own = std::min(seconds[0], seconds[1]);
      row.cells.push_back(Ratio(seconds[3], own));
      row.cells.push_back(Ratio(seconds[4], own));
      table.rows.push_back(std::move(row));
      chart.series.push_back(std::move(series));
    }
    for (const std::string_view family : families) chart.bars.emplace_back(family);
    result.tables.push_back(std::move(table));
    result.charts.push_back(std::move(chart));
  }
  result.notes = {SimulationNote(ranks)};
  return result;
}

Result<ExperimentResult> RunFigure14(const ExperimentOptions& options) {
  constexpr std::array<Pattern, 2> kPatterns = {
      {{"FFT of N1 points", "fft1", 64, 3}, {"FFT of N2 points", "fft2", 512, 3}}};
  Result<ExperimentResult> result = Run({"fugaku"}, kPatterns, options);
  if (result)
    result->notes.emplace_back(
        "The three transposes of a parallel FFT with the paper's blocks; transforms between them "
        "are not counted. N1: ranks below 0.625 P send 8 values to ranks below 0.78125 P. N2: 64 "
        "values each, 16 to the last. The paper, whole application, P = 8192: coalesced 9.42 (N1) "
        "and 4.01 (N2) times faster than MPI_Alltoallv.");
  return result;
}

Result<ExperimentResult> RunFigure15(const ExperimentOptions& options) {
  constexpr std::array<Pattern, 1> kPatterns = {
      {{"transitive closure, as modelled", "power-law", 256, 5800}}};
  Result<ExperimentResult> result = Run({"polaris", "fugaku"}, kPatterns, options);
  if (result)
    result->notes.emplace_back(
        "A model, not the application: 5800 iterations as in the paper, each an exchange of blocks "
        "of 0 to 256 bytes by a power law, most of them empty, as tuples that are found anew and "
        "spread over the ranks by a hash would be; one iteration is simulated. The paper's graph "
        "has 1,014,951 edges; at P = 8192 coalesced is 7.96 (Polaris) and 11.09 (Fugaku) times "
        "faster than MPI_Alltoallv.");
  return result;
}

}  // namespace

Experiment TunaFigure14() {
  return {"tuna-fig14", "[tuna] figure 14", "transposes of a parallel FFT, in simulation",
          RunFigure14};
}
Experiment TunaFigure15() {
  return {"tuna-fig15", "[tuna] figure 15",
          "exchanges like those of a transitive closure, in simulation", RunFigure15};
}

}  // namespace tutti

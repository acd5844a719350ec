// [tuna] figures 14 and 15: two applications (examples/mpi) run in simulation, with what MPI
// libraries have and with ours, by name.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "registry.h"
#include "tables.h"
#include "tuna.h"
#include "tutti/base/progress.h"

namespace tutti {
namespace tuna_applications {
namespace {

using namespace tuna;

constexpr int64_t kLargest = 256;  // ranks

struct Application {
  const char* name;
  const char* program;  // of examples/mpi, built for simulation
  std::vector<std::string> flags;
};

struct Times {
  double communication_s = 0;  // of the slowest rank
  std::string first_line;      // what was computed
};

// "communication 12.3 us, all 45.6 us (slowest rank)"
std::optional<Times> ParseTimes(std::string_view text) {
  constexpr std::string_view kBefore = "communication ";
  const size_t at = text.find(kBefore);
  if (at == text.npos) return std::nullopt;
  double microseconds = 0;
  const auto read =
      std::from_chars(text.data() + at + kBefore.size(), text.data() + text.size(), microseconds);
  if (read.ec != std::errc()) return std::nullopt;
  return Times{microseconds * 1e-6, std::string(text.substr(0, text.find('\n')))};
}

Result<Times> RunApplication(const Machine& machine, const Application& application,
                             const std::string& algorithm) {
  const std::array<std::string, 1> environment = {"TUTTI_ALLTOALLV=" + algorithm};
  const Result<std::string> output =
      RunSimulated(machine, application.program, application.flags, environment);
  if (!output) return tl::unexpected(output.error());
  std::optional<Times> times = ParseTimes(*output);
  if (!times)
    return MakeError(ErrorCode::kIo, fmt::format("{} did not say how long it took: {}",
                                                 application.program, output->substr(0, 200)));
  return *std::move(times);
}

Result<ExperimentResult> Run(std::span<const char* const> platforms,
                             std::span<const Application> applications,
                             const ExperimentOptions& options) {
  ExperimentResult result;
  const int64_t ranks = RanksUpTo(kLargest, options).back();
  std::vector<std::string> said;
  for (const char* platform : platforms) {
    const Machine machine{platform, ranks};
    std::vector<std::string> algorithms = {std::string(kAllAtOnce), std::string(kWindow),
                                           "tuna:r=4", "tuna:r=16"};
    for (std::string& name : Hierarchical(machine)) algorithms.push_back(std::move(name));
    ProgressScope progress("running applications",
                           static_cast<int64_t>(applications.size() * algorithms.size()));
    ResultTable table{
        .title = fmt::format("Communication of the application, {}, P = {}", platform, ranks),
        .label_name = "algorithm",
        .columns = {}};
    for (const std::string& algorithm : algorithms) table.rows.push_back({algorithm, {}});
    Chart chart{.title = fmt::format("{}, P = {}", platform, ranks),
                .x_label = "",
                .y_label = "microseconds"};
    chart.bars = algorithms;
    for (const Application& application : applications) {
      table.columns.push_back({.name = application.name, .unit = "us", .digits = 1});
      table.columns.push_back(
          {.name = fmt::format("all at once / it, {}", application.name), .digits = 2});
      ChartSeries series{.name = application.name};
      double own = 0;
      for (size_t i = 0; i < algorithms.size(); ++i) {
        const Result<Times> times = RunApplication(machine, application, algorithms[i]);
        if (!times) return tl::unexpected(times.error());
        if (i == 0) own = times->communication_s;
        if (i == 0 && platform == platforms.front()) said.push_back(times->first_line);
        table.rows[i].cells.push_back(Microseconds(times->communication_s));
        table.rows[i].cells.push_back(Ratio(own, times->communication_s));
        series.points.emplace_back(static_cast<double>(i), times->communication_s * 1e6);
        progress.Add(1);
      }
      chart.series.push_back(std::move(series));
    }
    result.tables.push_back(std::move(table));
    result.charts.push_back(std::move(chart));
  }
  result.notes = {SimulationNote(),
                  "The programs of examples/mpi themselves, as they run on real machines. Times "
                  "are those in all-to-all-v (and the exchange of counts before it) of the slowest "
                  "rank; computation takes no simulated time, so that waiting for ranks with more "
                  "to compute is left out."};
  for (const std::string& line : said) result.notes.push_back("The program says: " + line);
  return result;
}

Result<ExperimentResult> RunFigure14(const ExperimentOptions& options) {
  constexpr std::array<const char*, 2> kPlatforms = {"polaris", "fugaku"};
  const std::array<Application, 2> applications = {
      {{"FFT of N1 points",
        "fourier-smpi",
        {"--shape", "line", "--size", "n1", "--iterations", "1", "--check", "no"}},
       {"FFT of N2 points",
        "fourier-smpi",
        {"--shape", "line", "--size", "n2", "--iterations", "1", "--check", "no"}}}};
  Result<ExperimentResult> result = Run(kPlatforms, applications, options);
  if (result)
    result->notes.emplace_back(
        "A Fourier transform of one dimension, three all-to-all-v each. N1: ranks below 0.625 P "
        "send 8 values to ranks below 0.78125 P. N2: 32 points to each, 8 from the last. The "
        "paper, whole application, P = 8192: coalesced 9.42 (N1) and 4.01 (N2) times faster than "
        "MPI_Alltoallv.");
  return result;
}

Result<ExperimentResult> RunFigure15(const ExperimentOptions& options) {
  constexpr std::array<const char*, 2> kPlatforms = {"polaris", "fugaku"};
  std::vector<Application> applications = {
      {"transitive closure",
       "closure-smpi",
       {"--vertices", "400", "--edges", "480", "--seed", "1"}}};
  // As many edges as the paper's graph, between so many vertices that the closure stays small. Not
  // checked: every rank would walk the whole graph.
  constexpr int64_t kRanksOfLarge = 64;
  if (RanksUpTo(kLargest, options).back() >= kRanksOfLarge)
    applications.push_back(
        {"1,014,951 edges",
         "closure-smpi",
         {"--vertices", "1400000", "--edges", "1014951", "--seed", "1", "--check", "no"}});
  Result<ExperimentResult> result = Run(kPlatforms, applications, options);
  if (result)
    result->notes.emplace_back(
        "Transitive closure by repeated join of two random graphs. Of the small one the answer is "
        "compared with a serial walk. The large one, from 64 ranks on, has as many edges as the "
        "paper's, which takes over 5,800 iterations: its longest chains decide that, and a random "
        "graph has short ones. The paper, P = 8192: coalesced is 7.96 (Polaris) and 11.09 (Fugaku) "
        "times faster than MPI_Alltoallv.");
  return result;
}

}  // namespace
}  // namespace tuna_applications

Experiment TunaFigure14() {
  return {"tuna-fig14", "[tuna] figure 14", "a parallel FFT, run in simulation",
          tuna_applications::RunFigure14};
}
Experiment TunaFigure15() {
  return {"tuna-fig15", "[tuna] figure 15", "transitive closure, run in simulation",
          tuna_applications::RunFigure15};
}

}  // namespace tutti

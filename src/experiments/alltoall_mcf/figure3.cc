// [alltoall-mcf] figure 3: throughput of time-stepped schedules, which hosts forward.
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "fabric.h"
#include "mcf.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/sim/simulator.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/verify/verifier.h"

namespace tutti {
namespace mcf_figure3 {
namespace {

using namespace mcf;

constexpr std::array<std::string_view, 3> kAlgorithms = {"tsmcf", "ten", "direct"};

Result<Schedule> MakeVerified(const Topology& topology, std::string_view algorithm) {
  const Result<const Synthesizer*> synthesizer = FindSynthesizer(algorithm);
  if (!synthesizer) return tl::unexpected(synthesizer.error());
  const Result<Collective> collective =
      Collective::Make(CollectiveKind::kAllToAll, topology.num_ranks());
  if (!collective) return tl::unexpected(collective.error());
  SynthOptions options;
  options.size_bytes = kLargestSize;
  Result<Schedule> schedule = RunSynthesizer(**synthesizer, topology, *collective, options);
  if (!schedule) return schedule;
  const VerifyReport report = Verify(topology, schedule->collective, *schedule);
  if (report.cancelled) return tl::unexpected(CancelledError());
  if (!report.verified())
    return MakeError(ErrorCode::kInfeasible, std::string(algorithm) + " made a wrong schedule: " +
                                                 report.violations.front().message);
  return schedule;
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  ResultTable table{
      .title = fmt::format("Throughput a rank at {} MiB, a barrier a step", kLargestSize >> 20),
      .label_name = "network",
      .columns = {{.name = "f", .style = FigureStyle::kExact},
                  {.name = "limit (N - 1) f b", .unit = "GB/s", .digits = 2}}};
  for (const std::string_view algorithm : kAlgorithms)
    table.columns.push_back({.name = std::string(algorithm), .unit = "GB/s", .digits = 2});
  ExperimentResult result;
  result.charts_a_row = 2;
  for (const Fabric& fabric : WithProgress("networks of figure 3", kFabrics)) {
    if (!WithinSize(options, fabric.ranks)) continue;
    const Result<Network> network = MakeNetwork(fabric.Stepped());
    if (!network) return tl::unexpected(network.error());
    const bool printed = fabric.f_stepped[0] != '\0';
    ResultRow row{std::string(fabric.name),
                  {Figure(network->f, fabric.f_stepped),
                   Figure(Rational::FromDouble(LimitGigabytes(*network)), printed ? "6.01" : "")}};
    Chart chart{.title = fmt::format("{}: throughput of time-stepped schedules", fabric.name),
                .x_label = "size M (bytes)",
                .y_label = "GB/s a rank",
                .log_x = true};
    for (const std::string_view algorithm : kAlgorithms) {
      const Result<Schedule> schedule = MakeVerified(network->topology, algorithm);
      if (!schedule) {
        if (schedule.error().code == ErrorCode::kCancelled) return tl::unexpected(schedule.error());
        row.cells.push_back(Word(ErrorWord(schedule.error())));
        continue;
      }
      ChartSeries series{.name = std::string(algorithm)};
      for (int64_t size = kSmallestSize; size <= kLargestSize; size *= 4) {
        SimOptions simulate;
        simulate.size_bytes = size;
        const Result<SimReport> report = Simulate(network->topology, *schedule, simulate);
        if (!report) return tl::unexpected(report.error());
        series.points.emplace_back(static_cast<double>(size), report->busbw * 1e-9);
      }
      row.cells.push_back(Figure(Rational::FromDouble(series.points.back().second)));
      chart.series.push_back(std::move(series));
    }
    table.rows.push_back(std::move(row));
    result.charts.push_back(std::move(chart));
  }
  result.tables = {table};
  result.notes = {
      "Every byte goes through the hosts: 100 Gbit/s into and out of each, links of 25 Gbit/s. The "
      "link's alpha is not printed: 1 us is assumed. Each step waits for the step before on all "
      "links, as the paper's runtimes do.",
      "SCCL and TACCL, which the figure shows too, are not rebuilt for all-to-all; ten and direct "
      "stand for what works without a flow."};
  return result;
}

}  // namespace
}  // namespace mcf_figure3

Experiment McfFigure3() {
  return {"mcf-fig3", "[alltoall-mcf] figure 3",
          "throughput of time-stepped all-to-all on K4,4, cubes and a 3x3x3 torus",
          mcf_figure3::Run};
}

}  // namespace tutti

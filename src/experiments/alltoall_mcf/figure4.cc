// [alltoall-mcf] figures 4 and 5: throughput of routings at flow level, on the networks of the
// paper's testbeds and on punctured tori.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "fabric.h"
#include "mcf.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"
#include "tutti/sim/flow_simulator.h"
#include "tutti/topo/expression.h"

namespace tutti {
namespace mcf_figure4 {
namespace {

using namespace mcf;

// Iterations of the simplex method: the same answer on every machine.
constexpr int64_t kIlpIterations = 50'000;
constexpr int32_t kInstances = 10;

constexpr std::array<Method, 6> kMethods = {{{"MCF-extP", "mcf-extp"},
                                             {"ILP-disjoint", "ilp-disjoint"},
                                             {"EwSP", "ewsp"},
                                             {"SSSP", "sssp"},
                                             {"DOR", "dor"},
                                             {"native", "native"}}};

// GB/s that each rank sends to others, as the paper counts throughput.
Result<double> Throughput(const Topology& topology, const Routing& routing, int64_t size) {
  FlowSimOptions options;
  options.size_bytes = size;
  const Result<FlowSimReport> report = SimulateRouting(topology, routing, options);
  if (!report) return tl::unexpected(report.error());
  return report->busbw * 1e-9;
}

Result<ExperimentResult> RunFigure4(const ExperimentOptions& options) {
  ResultTable table{
      .title = fmt::format("Throughput a rank at {} MiB, flow level", kLargestSize >> 20),
      .label_name = "network",
      .columns = {{.name = "f", .style = FigureStyle::kExact},
                  {.name = "limit (N - 1) f b", .unit = "GB/s", .digits = 2}}};
  for (const Method& method : kMethods)
    table.columns.push_back({.name = std::string(method.name), .unit = "GB/s", .digits = 2});
  ResultTable claims{.title = "What the paper says of the figure",
                     .label_name = "MCF-extP over",
                     .columns = {{.name = "times as fast", .digits = 2}}};
  ExperimentResult result;
  result.charts_a_row = 2;
  for (const Fabric& fabric : WithProgress("networks of figure 4", kFabrics)) {
    if (!WithinSize(options, fabric.ranks)) continue;
    const Result<Network> network = MakeNetwork(fabric.Routed());
    if (!network) return tl::unexpected(network.error());
    ResultRow row{std::string(fabric.name),
                  {Figure(network->f, fabric.f_routed),
                   Figure(Rational::FromDouble(LimitGigabytes(*network)))}};
    Chart chart{.title = fmt::format("{}: throughput of routings", fabric.name),
                .x_label = "size M (bytes)",
                .y_label = "GB/s a rank",
                .log_x = true};
    std::array<double, kMethods.size()> largest{};
    for (size_t i = 0; i < kMethods.size(); ++i) {
      const Result<Outcome> outcome = Route(network->topology, kMethods[i], kIlpIterations);
      if (!outcome) {
        if (outcome.error().code == ErrorCode::kCancelled) return tl::unexpected(outcome.error());
        row.cells.push_back(Word(ErrorWord(outcome.error())));
        continue;
      }
      ChartSeries series{.name = std::string(kMethods[i].name)};
      for (int64_t size = kSmallestSize; size <= kLargestSize; size *= 4) {
        const Result<double> speed = Throughput(network->topology, outcome->routing, size);
        if (!speed) return tl::unexpected(speed.error());
        series.points.emplace_back(static_cast<double>(size), *speed);
        largest[i] = *speed;
      }
      row.cells.push_back(Figure(Rational::FromDouble(largest[i])));
      chart.series.push_back(std::move(series));
    }
    for (size_t i = 1; i < kMethods.size(); ++i) {
      const bool native = kMethods[i].name == "native" && fabric.over_native[0] != '\0';
      const bool sssp = kMethods[i].name == "SSSP" && fabric.over_sssp[0] != '\0';
      if ((native || sssp) && largest[i] > 0)
        claims.rows.push_back({fmt::format("{} on {}", kMethods[i].name, fabric.name),
                               {Figure(Rational::FromDouble(largest[0] / largest[i]),
                                       native ? fabric.over_native : fabric.over_sssp)}});
    }
    table.rows.push_back(std::move(row));
    result.charts.push_back(std::move(chart));
  }
  result.tables = {table, claims};
  result.notes = {
      "NICs forward and stream (cut-through); flows share links by max-min fairness, one flow a "
      "chunk. Links of 25 Gbit/s, 100 Gbit/s between host and NIC. The link's alpha is not "
      "printed: 1 us is assumed.",
      "The paper's figures are measured on hardware, whose injection is not controlled (its 5.5): "
      "there MCF-extP stays below its limit. Its native routes are the fabric's, which are not "
      "published; ours are the first shortest path of each pair."};
  return result;
}

Result<ExperimentResult> RunFigure5(const ExperimentOptions& options) {
  constexpr int32_t kRanks = 27;
  constexpr std::array<Method, 3> kCompared = {kMethods[0], kMethods[1], kMethods[3]};
  ResultTable table{.title = fmt::format("Throughput a rank at {} MiB over {} instances",
                                         kLargestSize >> 20, kInstances),
                    .label_name = "3x3x3 torus, method",
                    .columns = {{.name = "least", .unit = "GB/s", .digits = 2},
                                {.name = "average", .unit = "GB/s", .digits = 2},
                                {.name = "most", .unit = "GB/s", .digits = 2},
                                {.name = "busiest link", .unit = "of SSSP's", .digits = 3},
                                {.name = "proven least", .unit = "instances"}}};
  ProgressScope progress("instances of figure 5", int64_t{2} * kInstances);
  for (const char* what : {"links", "nodes"}) {
    if (!WithinSize(options, kRanks)) break;
    std::array<std::vector<double>, kCompared.size()> speeds, loads;
    std::array<int64_t, kCompared.size()> proven{};
    for (int32_t seed = 1; seed <= kInstances; ++seed) {
      const Result<Topology> topology = ParseTopology(
          fmt::format("without({},{}=3,seed={})", kFabrics.back().Routed(), what, seed));
      if (!topology) return tl::unexpected(topology.error());
      for (size_t i = 0; i < kCompared.size(); ++i) {
        const Result<Outcome> outcome = Route(*topology, kCompared[i], kIlpIterations / 5);
        if (!outcome) return tl::unexpected(outcome.error());
        const Result<double> speed = Throughput(*topology, outcome->routing, kLargestSize);
        if (!speed) return tl::unexpected(speed.error());
        speeds[i].push_back(*speed);
        loads[i].push_back((Rational(1) / outcome->rate).ToDouble());
        if (outcome->rate_upper && outcome->rate >= *outcome->rate_upper) ++proven[i];
      }
      progress.Add(1);
    }
    const auto average = [](const std::vector<double>& values) {
      double sum = 0;
      for (const double value : values) sum += value;
      return sum / static_cast<double>(values.size());
    };
    for (size_t i = 0; i < kCompared.size(); ++i)
      table.rows.push_back(
          {fmt::format("3 {} removed, {}", what, kCompared[i].name),
           {Figure(Rational::FromDouble(*std::min_element(speeds[i].begin(), speeds[i].end()))),
            Figure(Rational::FromDouble(average(speeds[i]))),
            Figure(Rational::FromDouble(*std::max_element(speeds[i].begin(), speeds[i].end()))),
            Figure(Rational::FromDouble(average(loads[i]) / average(loads.back())),
                   i + 1 < kCompared.size() ? "0.7" : ""),
            proven[i] > 0 ? Figure(Rational(proven[i])) : Word("-")}});
  }
  ExperimentResult result;
  result.tables = {table};
  result.notes = {fmt::format(
      "Flow level as mcf-fig4; the integer program has {} simplex iterations an "
      "instance. Where nodes "
      "are removed 24 ranks are left. The paper's maximum link load is \"~30 % lower "
      "than SSSP\" for both. Proven least: no choice of one disjoint path a pair loads the "
      "busiest link less, for its load is a whole number of demands.",
      kIlpIterations / 5)};
  return result;
}

}  // namespace
}  // namespace mcf_figure4

Experiment McfFigure4() {
  return {"mcf-fig4", "[alltoall-mcf] figure 4",
          "throughput of routings on K4,4, cubes and a 3x3x3 torus, flow level",
          mcf_figure4::RunFigure4};
}

Experiment McfFigure5() {
  return {"mcf-fig5", "[alltoall-mcf] figure 5",
          "throughput of routings on tori that lost three links or three nodes",
          mcf_figure4::RunFigure5};
}

}  // namespace tutti

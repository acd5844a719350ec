// [alltoall-mcf] figures 8 and 9: all-to-all time of routings over the optimum, on generalized
// Kautz graphs of degree 4 and on one of degree 8 with links taken away.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "mcf.h"
#include "registry.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"

namespace tutti {
namespace mcf_figure8 {
namespace {

using namespace mcf;

constexpr int64_t kUsualLargest = 100;
// Iterations of the simplex method: the same answer on every machine.
constexpr int64_t kIlpIterations = 25'000;
constexpr int64_t kLargeIlpIterations = 1'500'000;
// With more ranks the integer program over whole paths finds nothing with so many.
constexpr int32_t kMaxIlpRanks = 44;

constexpr std::array<Method, 6> kMethods = {{{"SSSP", "sssp"},
                                             {"EwSP", "ewsp"},
                                             {"ILP-disjoint", "ilp-disjoint"},
                                             {"pMCF (disjoint)", "pmcf", PathSet::kDisjoint},
                                             {"pMCF (shortest)", "pmcf", PathSet::kShortest},
                                             {"MCF-extP", "mcf-extp"}}};

struct Worst {
  std::optional<Rational> value;
  void Add(const ResultCell& cell) {
    if (cell.ours && (!value || *value < *cell.ours)) value = cell.ours;
  }
  ResultCell Cell(std::string paper) const {
    return value ? Figure(*value, std::move(paper)) : Word("-", std::move(paper));
  }
};

ResultTable Table(std::string title, std::string label_name) {
  ResultTable table{.title = std::move(title), .label_name = std::move(label_name), .columns = {}};
  table.columns.push_back({.name = "1/f", .unit = "optimum", .digits = 2});
  for (const Method& method : kMethods)
    table.columns.push_back({.name = std::string(method.name), .unit = "of optimum", .digits = 3});
  return table;
}

// One row: every method on one network.
Status AddRow(const std::string& expression, std::string label, int64_t ilp_iterations,
              int32_t max_ilp_ranks, ResultTable& table,
              std::array<Worst, kMethods.size()>& worst) {
  const Result<Network> network = MakeNetwork(expression);
  if (!network) return tl::unexpected(network.error());
  ResultRow row{std::move(label), {Figure(Rational(1) / network->f)}};
  for (size_t i = 0; i < kMethods.size(); ++i) {
    const bool integers = kMethods[i].router.starts_with("ilp");
    if (integers && network->topology.num_ranks() > max_ilp_ranks) {
      row.cells.push_back(Word("-"));
      continue;
    }
    const Result<Outcome> outcome =
        Route(network->topology, kMethods[i], integers ? ilp_iterations : 0);
    if (!outcome && outcome.error().code == ErrorCode::kCancelled)
      return tl::unexpected(outcome.error());
    row.cells.push_back(OverOptimum(*network, outcome));
    worst[i].Add(row.cells.back());
  }
  table.rows.push_back(std::move(row));
  return {};
}

constexpr const char* kHow =
    "All-to-all time of a routing is the load of its busiest link; divided by the upper limit of "
    "the concurrent flow, which is proven to within 0.01 %. Every routing is judged first.";

Result<ExperimentResult> RunFigure8(const ExperimentOptions& options) {
  ResultTable table = Table("All-to-all time over the optimum, genkautz(4,N)", "N");
  std::array<Worst, kMethods.size()> worst;
  constexpr std::array<int32_t, 9> kRanks = {10, 20, 30, 44, 50, 75, 100, 150, 200};
  for (const int32_t ranks : WithProgress("networks of figure 8", kRanks)) {
    if (!WithinSize(options, ranks) || (ranks > kUsualLargest && !options.large)) continue;
    if (const Status status = AddRow(fmt::format("genkautz(4,{})", ranks), std::to_string(ranks),
                                     options.large ? kLargeIlpIterations : kIlpIterations,
                                     kMaxIlpRanks, table, worst);
        !status)
      return tl::unexpected(status.error());
  }
  // In the order of kMethods.
  constexpr std::array<const char*, kMethods.size()> kPaper = {"<= 1.6", "<= 1.6", "",
                                                               "1.0",    "",       "1.0"};
  ResultTable most{.title = "The worst of all N",
                   .label_name = "method",
                   .columns = {{.name = "over the optimum", .digits = 3}}};
  for (size_t i = 0; i < kMethods.size(); ++i)
    most.rows.push_back({std::string(kMethods[i].name), {worst[i].Cell(kPaper[i])}});
  ExperimentResult result;
  for (size_t i = 0; i < kMethods.size(); ++i) {
    if (result.charts.empty())
      result.charts.push_back({.title = "All-to-all time over the optimum, genkautz(4,N)",
                               .x_label = "ranks N",
                               .y_label = "time / optimum",
                               .y_min = 0.95});
    ChartSeries series{.name = std::string(kMethods[i].name)};
    for (const ResultRow& row : table.rows)
      if (row.cells[i + 1].ours)
        series.points.emplace_back(std::stod(row.label), row.cells[i + 1].ours->ToDouble());
    if (!series.points.empty()) result.charts.front().series.push_back(std::move(series));
  }
  if (table.rows.empty()) result.charts.clear();
  result.tables = {most, table};
  result.notes = {
      kHow,
      fmt::format("The integer program has {} simplex iterations a network (--large: {}), up to {} "
                  "ranks as in the paper; N beyond {} with --large.",
                  kIlpIterations, kLargeIlpIterations, kMaxIlpRanks, kUsualLargest)};
  return result;
}

Result<ExperimentResult> RunFigure9(const ExperimentOptions& options) {
  constexpr int32_t kRanks = 81;
  ResultTable table =
      Table("All-to-all time over the optimum, genkautz(8,81) with links removed", "links removed");
  std::array<Worst, kMethods.size()> worst;
  constexpr std::array<int32_t, 5> kRemoved = {0, 10, 20, 40, 80};
  for (const int32_t removed : WithProgress("networks of figure 9", kRemoved)) {
    if (!WithinSize(options, kRanks)) break;
    const std::string expression =
        removed == 0 ? "genkautz(8,81)" : fmt::format("without(genkautz(8,81),links={})", removed);
    if (const Status status =
            AddRow(expression, std::to_string(removed),
                   options.large ? kLargeIlpIterations : kIlpIterations, kRanks, table, worst);
        !status)
      return tl::unexpected(status.error());
  }
  ResultTable most{.title = "The worst of all",
                   .label_name = "method",
                   .columns = {{.name = "over the optimum", .digits = 3}}};
  for (size_t i = 0; i < kMethods.size(); ++i)
    most.rows.push_back({std::string(kMethods[i].name),
                         {worst[i].Cell(kMethods[i].router == "ilp-disjoint" ? "<= 1.1" : "")}});
  ExperimentResult result;
  result.tables = {most, table};
  result.notes = {
      kHow, fmt::format(
                "The integer program has {} simplex iterations a network (--large: {}); the paper "
                "allows it a tolerance of 0.1.",
                kIlpIterations, kLargeIlpIterations)};
  return result;
}

}  // namespace
}  // namespace mcf_figure8

Experiment McfFigure8() {
  return {"mcf-fig8", "[alltoall-mcf] figure 8",
          "all-to-all time of six routings over the optimum on generalized Kautz graphs",
          mcf_figure8::RunFigure8};
}

Experiment McfFigure9() {
  return {"mcf-fig9", "[alltoall-mcf] figure 9",
          "the same where links of a network of degree 8 have failed", mcf_figure8::RunFigure9};
}

}  // namespace tutti

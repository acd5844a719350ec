// [tuna] figures 10 and 11: parameters and breakdown of the hierarchical forms.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "registry.h"
#include "tables.h"
#include "tuna.h"

namespace tutti {
namespace tuna_hierarchy {
namespace {

using namespace tuna;

constexpr const char* kPlatform = "fugaku";
constexpr std::array<int64_t, 3> kSizes = {16, 512, 2048};
constexpr std::array<const char*, 4> kForms = {"coalesced", "staggered", "shared",
                                               "shared-coalesced"};

// Block counts of the second table of figure 10; the most of a form stands in its last column.
constexpr std::array<int64_t, 4> kCounts = {1, 4, 16, 64};

// How many messages between nodes a rank of this form has under way at most; of the shared forms
// more than that, since their waves overlap.
int64_t MostAtOnce(const Machine& machine, std::string_view form) {
  const int64_t others = std::max<int64_t>(1, machine.Nodes() - 1);
  if (form == "coalesced") return others;
  return form == "staggered" ? others * machine.RanksPerNode() : 4 * others;
}

std::string NameOf(std::string_view form, int64_t radix, int64_t count) {
  return form.starts_with("shared") ? fmt::format("{}:b={}", form, count)
                                    : fmt::format("{}:r={},b={}", form, radix, count);
}

// Radices inside a node where the form has them, and block counts up to the messages it sends
// between nodes.
std::vector<std::string> Parameters(const Machine& machine, std::string_view form) {
  const int64_t most = MostAtOnce(machine, form);
  const std::vector<int64_t> radices = Radices(machine.RanksPerNode());
  std::vector<std::string> names;
  for (const int64_t radix : radices) names.push_back(NameOf(form, radix, most));
  if (form.starts_with("shared")) names = {NameOf(form, 0, most), NameOf(form, 0, most / 4)};
  for (const int64_t count : kCounts)
    if (count < most) names.push_back(NameOf(form, radices.front(), count));
  return names;
}

double Inside(const Measured& measured) { return measured.seconds - measured.inter_node_s; }

Result<std::vector<Measured>> RunForms(const Machine& machine, const ExperimentOptions& options) {
  // One a form: two run at once.
  std::vector<Simulation> simulations;
  for (const char* form : kForms)
    simulations.push_back({machine, Grid(kSizes, Parameters(machine, form))});
  const Result<std::vector<std::vector<Measured>>> all = SimulateAll(simulations, options);
  if (!all) return tl::unexpected(all.error());
  std::vector<Measured> flat;
  for (const std::vector<Measured>& each : *all) flat.insert(flat.end(), each.begin(), each.end());
  return flat;
}

// Times between nodes by the block count, other parameters alike.
ResultTable ByBlockCount(const Machine& machine, const std::vector<Measured>& all) {
  ResultTable table{.title = fmt::format("Between nodes by the block count, {}, P = {}, {} nodes",
                                         kPlatform, machine.ranks, machine.Nodes()),
                    .label_name = "S (bytes), form",
                    .columns = {}};
  for (const int64_t count : kCounts)
    table.columns.push_back({.name = fmt::format("b = {}", count), .unit = "us", .digits = 1});
  table.columns.push_back({.name = "most at once", .unit = "us", .digits = 1});
  table.columns.push_back({.name = "the most"});
  const int64_t radix = Radices(machine.RanksPerNode()).front();
  for (const int64_t size : kSizes) {
    for (const char* form : kForms) {
      const int64_t most = MostAtOnce(machine, form);
      ResultRow row{.label = fmt::format("{}, {}", size, form), .cells = {}};
      const auto add = [&](int64_t count) {
        const Measured* measured = Fastest(all, size, {NameOf(form, radix, count)});
        row.cells.push_back(measured == nullptr ? Word("") : Microseconds(measured->inter_node_s));
      };
      for (const int64_t count : kCounts) add(count);
      add(most);
      row.cells.push_back(Figure(most));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Result<ExperimentResult> RunFigure10(const ExperimentOptions& options) {
  // Few ranks a node, so that there are many nodes and the block count matters.
  constexpr int64_t kFewRanks = 8;
  const int64_t ranks = RanksUpTo(256, options).back();
  const Machine machine{kPlatform, ranks, std::clamp<int64_t>(ranks / 4, 1, kFewRanks)};
  const Result<std::vector<Measured>> all = RunForms(machine, options);
  if (!all) return tl::unexpected(all.error());
  ExperimentResult result;
  ResultTable table{.title = fmt::format("Hierarchical forms, {}, P = {}, {} ranks a node",
                                         kPlatform, machine.ranks, machine.RanksPerNode()),
                    .label_name = "S (bytes), form",
                    .columns = {{.name = "inside nodes, least", .unit = "us", .digits = 1},
                                {.name = "inside, most", .unit = "us", .digits = 1},
                                {.name = "between nodes, least", .unit = "us", .digits = 1},
                                {.name = "between, most", .unit = "us", .digits = 1},
                                {.name = "together, least", .unit = "us", .digits = 1},
                                {.name = "with"}}};
  std::array<ChartSeries, kForms.size()> series;
  for (const int64_t size : kSizes) {
    for (size_t k = 0; k < kForms.size(); ++k) {
      const Measured* best = Fastest(*all, size, {kForms[k]});
      std::array<double, 4> range = {1e9, 0, 1e9, 0};
      for (const Measured& each : *all) {
        if (each.point.size != size ||
            each.point.algorithm.substr(0, each.point.algorithm.find(':')) != kForms[k])
          continue;
        range[0] = std::min(range[0], Inside(each));
        range[1] = std::max(range[1], Inside(each));
        range[2] = std::min(range[2], each.inter_node_s);
        range[3] = std::max(range[3], each.inter_node_s);
      }
      table.rows.push_back(
          {fmt::format("{}, {}", size, kForms[k]),
           {Microseconds(range[0]), Microseconds(range[1]), Microseconds(range[2]),
            Microseconds(range[3]), Microseconds(best->seconds), Word(ParametersOf(*best))}});
      series[k].name = kForms[k];
      series[k].points.emplace_back(static_cast<double>(size), best->seconds * 1e6);
    }
  }
  Chart chart{.title = table.title,
              .x_label = "S (bytes)",
              .y_label = "microseconds, best parameters",
              .log_x = true,
              .log_y = true};
  for (ChartSeries& one : series) chart.series.push_back(std::move(one));
  result.tables = {std::move(table), ByBlockCount(machine, *all)};
  result.charts = {std::move(chart)};
  result.notes = {SimulationNote(),
                  "Here 8 ranks a node, so that there are nodes enough for the block count to "
                  "matter. Between nodes: the mean over the ranks of what the exchange between "
                  "nodes took; inside: the rest. Radices with all messages at once, block counts "
                  "with r = 2. "
                  "The paper: coalesced 17 times faster than staggered at P = 8192, S = 16; "
                  "staggered 1.23 times faster at S = 16 KiB."};
  return result;
}

// Bytes counted beside [tuna] section III-C.
Result<ResultTable> MemoryOfTuna(const Machine& machine, const ExperimentOptions& options) {
  constexpr std::array<int64_t, 2> kBlocks = {512, 2048};
  std::vector<int64_t> radices = FewRadices(machine.ranks);
  radices.push_back(std::max<int64_t>(2, machine.ranks / 2));
  const std::array<Simulation, 1> simulation = {{{machine, Grid(kBlocks, TunaOf(radices))}}};
  const Result<std::vector<std::vector<Measured>>> all = SimulateAll(simulation, options);
  if (!all) return tl::unexpected(all.error());
  ResultTable table{
      .title = fmt::format("Temporary memory of TuNA, {}, P = {}", machine.platform, machine.ranks),
      .label_name = "S (bytes), radix",
      .columns = {{.name = "K, messages of blocks"},
                  {.name = "B = P - (K + 1)"},
                  {.name = "B blocks of S", .unit = "bytes"},
                  {.name = "counted", .unit = "bytes"},
                  {.name = "counted / B blocks", .digits = 2}}};
  for (const Measured& measured : all->front()) {
    const auto at = static_cast<size_t>(&measured - all->front().data());
    const int64_t radix = radices[at % radices.size()];
    // Blocks whose distance has one digit other than 0 go straight to their place.
    const int64_t direct = MessagesOfTuna(machine.ranks, radix);
    const int64_t blocks = machine.ranks - (direct + 1);
    const int64_t bytes = blocks * measured.point.size;
    table.rows.push_back(
        {fmt::format("{}, r={}", measured.point.size, radix),
         {Figure(direct), Figure(blocks), Figure(bytes), Figure(measured.temporary_bytes),
          Ratio(static_cast<double>(measured.temporary_bytes),
                static_cast<double>(std::max<int64_t>(1, bytes)))}});
  }
  return table;
}

Result<ExperimentResult> RunFigure11(const ExperimentOptions& options) {
  const Machine machine{kPlatform, RanksUpTo(256, options).back()};
  const Result<std::vector<Measured>> all = RunForms(machine, options);
  if (!all) return tl::unexpected(all.error());
  struct Part {
    const char* name;
    double Measured::*seconds;
  };
  constexpr std::array<Part, 6> kParts = {{{"prepare", &Measured::prepare_s},
                                           {"metadata", &Measured::metadata_s},
                                           {"data", &Measured::data_s},
                                           {"copy", &Measured::copy_s},
                                           {"rearrange", &Measured::rearrange_s},
                                           {"inter-node", &Measured::inter_node_s}}};
  ResultTable table{.title = fmt::format("Where the time goes, {}, P = {}, {} ranks a node",
                                         kPlatform, machine.ranks, machine.RanksPerNode()),
                    .label_name = "S (bytes), form, parameters",
                    .columns = {}};
  for (const Part& part : kParts)
    table.columns.push_back({.name = part.name, .unit = "us", .digits = 1});
  table.columns.push_back({.name = "slowest rank", .unit = "us", .digits = 1});
  table.columns.push_back({.name = "temporary", .unit = "bytes"});
  ExperimentResult result;
  for (const int64_t size : kSizes) {
    Chart chart{.title = fmt::format("S = {}", size), .x_label = "", .y_label = "microseconds"};
    for (const Part& part : kParts) chart.series.push_back({.name = part.name});
    for (const char* form : kForms) {
      const Measured* best = Fastest(*all, size, {form});
      ResultRow row{.label = fmt::format("{}, {}", size, best->point.algorithm), .cells = {}};
      for (size_t k = 0; k < kParts.size(); ++k) {
        const double seconds = best->*kParts[k].seconds;
        row.cells.push_back(Microseconds(seconds));
        chart.series[k].points.emplace_back(static_cast<double>(chart.bars.size()), seconds * 1e6);
      }
      chart.bars.emplace_back(form);
      row.cells.push_back(Microseconds(best->seconds));
      row.cells.push_back(Figure(best->temporary_bytes));
      table.rows.push_back(std::move(row));
    }
    result.charts.push_back(std::move(chart));
  }
  Result<ResultTable> memory = MemoryOfTuna(machine, options);
  if (!memory) return tl::unexpected(memory.error());
  result.tables = {std::move(table), *std::move(memory)};
  result.notes = {
      SimulationNote(),
      "Means over the ranks, with the best parameters of figure 10. Prepare is what the "
      "engine does before the first message and costs no simulated time; the paper's "
      "MAX-all-reduce is not needed.",
      "Memory: the paper's buffer has places for B = P - (K + 1) blocks, K the messages of a "
      "rank, each as large as the largest block; counted is the most that a rank allocated. Ours "
      "is smaller, since a place is as large as the block that comes to lie there, which the "
      "sizes sent ahead tell."};
  return result;
}

}  // namespace
}  // namespace tuna_hierarchy

Experiment TunaFigure10() {
  return {"tuna-fig10", "[tuna] figure 10", "parameters of the hierarchical forms",
          tuna_hierarchy::RunFigure10};
}
Experiment TunaFigure11() {
  return {"tuna-fig11", "[tuna] figure 11", "where the time of the hierarchical forms goes",
          tuna_hierarchy::RunFigure11};
}

}  // namespace tutti

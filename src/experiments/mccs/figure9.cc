// [mccs] figures 9 and 10: three tenants of unequal importance on the testbed, how long an iteration of each takes.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mccs/testbed.h"
#include "registry.h"

namespace tutti {
namespace mccs_figure9 {
namespace {

using namespace mccs;

// Rings a communicator; 0: as many as routes times its ranks in a host.
std::string Apply(const std::string& policy, int32_t channels) {
  return fmt::format(R"({{"apply": {{"policy": "{}", "channels": {}}}}})", policy, channels);
}
std::string Pfa(int32_t channels) {
  return fmt::format(
      R"({{"apply": {{"policy": "pfa", "channels": {}, "reserved_routes": 1, "reserved_from": 1}}}})",
      channels);
}
// B finds the network idle, C keeps silent; one clock for all hosts.
std::string Windows(const char* holds) {
  return fmt::format(
      R"({{"windows": {{"preferred": "B", "victims": ["C"], "clock_error_ns": 100000, "holds": "{}"}}}})",
      holds);
}
std::string Follow(const char* holds) {
  return fmt::format(
      R"({{"windows": {{"preferred": "B", "victims": ["C"], "follow": true, "holds": "{}"}}}})",
      holds);
}

// Set-up 3 with the authors' workloads, bytes over 500: A as VGG in data parallel, B and C as GPT in tensor parallel.
std::vector<TestbedTenant> Tenants() {
  std::vector<TestbedTenant> tenants = SetUps()[2].tenants;
  tenants[0].bytes = 1'149'336;  // of 574,668,960
  tenants[0].compute_ms = 160;
  tenants[0].priority = 1;
  for (const size_t t : {size_t{1}, size_t{2}}) {
    tenants[t].bytes = 167'772;  // of 83,886,080
    tenants[t].compute_ms = 6;
  }
  return tenants;
}

constexpr std::array<const char*, 3> kNames = {"A", "B", "C"};

// In the order in which one run goes through them.
struct Way {
  const char* name;
  const char* bar;
  std::string (*command)(int32_t channels);
  std::array<const char*, 3> paper;  // over FFA, the authors' data
};
constexpr size_t kFfa = 1;
constexpr std::array<Way, 7> kWays = {
    {{"rings of the network, ECMP",
      "ECMP",
      [](int32_t channels) { return Apply("locality-ring", channels); },
      {"1.18", "1.22", "1.14"}},
     {"FFA",
      "FFA",
      [](int32_t channels) { return Apply("ffa", channels); },
      {"1.00", "1.00", "1.00"}},
     {"PFA", "PFA", Pfa, {"0.88", "1.32", "1.23"}},
     {"PFA and windows",
      "PFA, windows",
      [](int32_t) { return Windows("sends"); },
      {"0.88", "1.14", "1.43"}},
     {"PFA and windows, of launches",
      "of launches",
      [](int32_t) { return Windows("launches"); },
      {"0.88", "1.14", "1.43"}},
     {"PFA, C follows B", "C follows B", [](int32_t) { return Follow("sends"); }, {"", "", ""}},
     {"PFA, C follows B, launches",
      "launches",
      [](int32_t) { return Follow("launches"); },
      {"", "", ""}}}};

// By way and tenant, a value a seed.
struct Periods {
  std::array<std::array<std::vector<double>, kNames.size()>, kWays.size()> over_ffa, ms;
  int32_t refused = 0;  // commands
};

Result<Periods> MeasurePeriods(int32_t channels, const ExperimentOptions& options,
                               std::vector<TestbedOutcome>& all) {
  constexpr double kPhase_s = 3;
  Periods periods;
  std::vector<TestbedRun> runs;
  for (int32_t seed = 1; seed <= kSeeds; ++seed) {
    TestbedRun run{.seed = seed, .tenants = Tenants(), .steps = {}, .last_s = kPhase_s};
    for (const Way& way : kWays)
      run.steps.push_back({run.steps.empty() ? 0 : kPhase_s, way.command(channels)});
    runs.push_back(std::move(run));
  }
  const Result<std::vector<TestbedOutcome>> outcomes = RunTestbeds(runs, options, 2);
  if (!outcomes) return tl::unexpected(outcomes.error());
  all.insert(all.end(), outcomes->begin(), outcomes->end());
  for (const TestbedOutcome& outcome : *outcomes) {
    for (size_t way = 0; way < kWays.size(); ++way) {
      const bool refused = !outcome.errors[way].empty();
      if (refused) ++periods.refused;
      for (size_t t = 0; t < kNames.size(); ++t) {
        const double ffa = MeanOf(outcome.Periods(kNames[t], kFfa));
        const double mean = MeanOf(outcome.Periods(kNames[t], way));
        if (ffa <= 0 || mean <= 0 || refused) continue;
        periods.ms[way][t].push_back(1e3 * mean);
        periods.over_ffa[way][t].push_back(mean / ffa);
      }
    }
  }
  return periods;
}

// Ours and the paper's, by way.
Chart ChartOf(const Periods& periods, std::string title) {
  Chart chart{.title = std::move(title),
              .x_label = "",
              .y_label = "time of an iteration / under FFA",
              .bars = {},
              .beside = true};
  for (const Way& way : kWays) chart.bars.emplace_back(way.bar);
  for (size_t t = 0; t < kNames.size(); ++t) {
    ChartSeries ours{.name = kNames[t]};
    ChartSeries paper{.name = fmt::format("{}, the paper's", kNames[t]), .like = kNames[t]};
    for (size_t way = 0; way < kWays.size(); ++way) {
      const auto x = static_cast<double>(way);
      const std::string of_paper = kWays[way].paper[t];
      paper.points.emplace_back(x, of_paper.empty() ? 0 : std::stod(of_paper));
      const bool measured = !periods.over_ffa[way][t].empty();
      ours.points.emplace_back(x, measured ? EstimateOf(periods.over_ffa[way][t]).mean : 0);
    }
    chart.series.push_back(std::move(ours));
    chart.series.push_back(std::move(paper));
  }
  return chart;
}

Result<ExperimentResult> RunFigure9(const ExperimentOptions& options) {
  ExperimentResult result;
  std::vector<TestbedOutcome> outcomes;
  int32_t refused = 0;
  for (const int32_t channels : {0, 1}) {
    const Result<Periods> periods = MeasurePeriods(channels, options, outcomes);
    if (!periods) return tl::unexpected(periods.error());
    refused += periods->refused;
    ResultTable table{.title = fmt::format("Time of an iteration over that under FFA, {}",
                                           channels == 0 ? "rings: routes times ranks in a host"
                                                         : "one ring a tenant"),
                      .label_name = "way",
                      .columns = {}};
    for (const char* name : kNames) {
      table.columns.push_back({.name = name, .digits = 2, .timed = true});
      table.columns.push_back({.name = fmt::format("95 %, {}", name)});
      table.columns.push_back({.name = fmt::format("{}, ms", name), .digits = 1, .timed = true});
    }
    for (size_t way = 0; way < kWays.size(); ++way) {
      ResultRow row{kWays[way].name, {}};
      for (size_t t = 0; t < kNames.size(); ++t) {
        if (periods->ms[way][t].empty()) {
          row.cells.insert(row.cells.end(), {Word("refused"), Word(""), Word("")});
          continue;
        }
        const Estimate estimate = EstimateOf(periods->over_ffa[way][t]);
        row.cells.push_back(Number(estimate.mean, kWays[way].paper[t]));
        row.cells.push_back(Half(estimate));
        row.cells.push_back(Number(EstimateOf(periods->ms[way][t]).mean));
      }
      table.rows.push_back(std::move(row));
    }
    result.charts.push_back(ChartOf(*periods, table.title));
    result.tables.push_back(std::move(table));
  }
  result.notes = {
      fmt::format("{} seeds; set-up 3 (A: both devices of H0 and H2, B and C: a device each of H1 "
                  "and H3); A: all-reduces of 1,149,336 "
                  "bytes and 160 ms between them, B and C: 167,772 bytes and 6 ms. Three seconds a "
                  "way, changed while "
                  "all run.",
                  kSeeds),
      "PFA: one of the two routes between racks is for A alone. Windows: C is silent while B "
      "sends, as a trace of B predicts that is taken "
      "for a second in which C is silent; B keeps its phase. C follows B: B's daemons tell C's "
      "when B's ranks communicate; the paper has no such way. Of launches: a collective of C that "
      "has "
      "begun goes on to its end, new ones wait.",
      "The paper says neither how many rings a tenant has nor whether windows stop a collective "
      "that has begun; all readings are shown.",
      fmt::format(
          "Windows were refused in {} of {} runs (B kept no period), which do not count there.",
          refused, 4 * kSeeds)};
  for (std::string& note : NotesOf(outcomes)) result.notes.push_back(std::move(note));
  return result;
}

// Iterations a second up to each iteration, over as many as take a second; by seconds since `from_s`.
std::vector<std::pair<double, double>> RatesOf(const std::vector<Iteration>& iterations,
                                               double from_s, double to_s) {
  constexpr double kWindow_s = 1;
  std::vector<std::pair<double, double>> rates;
  size_t first = 0;
  while (first < iterations.size() && iterations[first].begin_s < from_s) ++first;
  for (size_t i = first, begin = first; i < iterations.size() && iterations[i].begin_s < to_s;
       ++i) {
    const auto span_s = [&](size_t from) {
      return iterations[i].begin_s - iterations[from].begin_s;
    };
    while (begin + 1 < i && span_s(begin + 1) >= kWindow_s) ++begin;
    if (span_s(begin) >= kWindow_s)
      rates.emplace_back(iterations[i].begin_s - from_s,
                         static_cast<double>(i - begin) / span_s(begin));
  }
  return rates;
}

// Iterations a second of each tenant of one run, over its own before anybody else came or anything changed.
Chart OverTime(const TestbedOutcome& outcome, const std::vector<std::string>& commands) {
  const double from_s = outcome.steps[0].second;
  Chart chart{.title = "One run: iterations a second, over each tenant's own at first",
              .x_label = "seconds",
              .y_label = "iterations a second, relative",
              .y_min = 0};
  for (const char* name : kNames) {
    const std::vector<std::pair<double, double>> rates =
        RatesOf(outcome.tenants.at(name), from_s, outcome.end_s);
    if (rates.empty()) continue;
    ChartSeries series{.name = name};
    for (const auto& [second, rate] : rates)
      series.points.emplace_back(second, rate / rates.front().second);
    chart.series.push_back(std::move(series));
  }
  for (size_t step = 0; step < commands.size(); ++step)
    if (!commands[step].empty())
      chart.series.push_back(
          CommandLineAt(outcome.steps[step].first - from_s, 1.2, commands[step]));
  return chart;
}

Result<ExperimentResult> RunFigure10(const ExperimentOptions& options) {
  constexpr double kPhase_s = 5;
  ExperimentResult result;
  constexpr int32_t kRings = 1;
  struct Change {
    const char* name;
    size_t tenant, before, after;
    const char* paper;
  };
  // Phases: 0 A alone; 2 with B; 4 with C; 5 PFA; 6 windows.
  constexpr std::array<Change, 4> kChanges = {
      {{"A: iterations a second as B comes, %", 0, 0, 2, "-17"},
       {"A: as C comes, %", 0, 2, 4, "-14"},
       {"A: by PFA, %", 0, 4, 5, "13"},
       {"B: by windows, %", 1, 5, 6, "18"}}};
  std::array<std::vector<double>, kChanges.size()> changes;
  std::vector<TestbedRun> runs;
  for (int32_t seed = 1; seed <= kSeeds; ++seed)
    runs.push_back({.seed = seed,
                    .tenants = Tenants(),
                    .steps = {{0, Apply("ffa", kRings)},
                              {kPhase_s, R"({"start": ["B"]})"},
                              {0, Apply("ffa", kRings)},
                              {kPhase_s, R"({"start": ["C"]})"},
                              {0, Apply("ffa", kRings)},
                              {kPhase_s, Pfa(kRings)},
                              {kPhase_s, Windows("sends")}},
                    .last_s = kPhase_s});
  const Result<std::vector<TestbedOutcome>> outcomes = RunTestbeds(runs, options, 2);
  if (!outcomes) return tl::unexpected(outcomes.error());
  result.charts = {OverTime(outcomes->front(),
                            {"", "B comes", "", "C comes", "", "priority for A", "windows for B"})};
  for (const TestbedOutcome& outcome : *outcomes) {
    for (size_t i = 0; i < kChanges.size(); ++i) {
      const Change& change = kChanges[i];
      const double before = MeanOf(outcome.Periods(kNames[change.tenant], change.before));
      const double after = MeanOf(outcome.Periods(kNames[change.tenant], change.after));
      if (after > 0) changes[i].push_back(100 * (before / after - 1));
    }
  }
  ResultTable table{.title = "Tenants that come, and commands, while all run",
                    .label_name = "what",
                    .columns = {{.name = "ours", .digits = 1, .timed = true}, {.name = "95 %"}}};
  for (size_t i = 0; i < kChanges.size(); ++i) {
    const Estimate estimate = EstimateOf(changes[i]);
    table.rows.push_back(
        {kChanges[i].name, {Number(estimate.mean, kChanges[i].paper), Half(estimate)}});
  }
  result.tables = {std::move(table)};
  result.notes = {
      fmt::format("{} seeds; tenants and workloads of figure 9, one ring a tenant, 5 s between the "
                  "commands; nothing is started again.",
                  kSeeds)};
  for (std::string& note : NotesOf(*outcomes)) result.notes.push_back(std::move(note));
  return result;
}

}  // namespace
}  // namespace mccs_figure9

Experiment MccsFigure9() {
  return {"mccs-fig9", "[mccs] figure 9",
          "tenants of unequal importance on the testbed: fair, by priority, with windows",
          mccs_figure9::RunFigure9};
}

Experiment MccsFigure10() {
  return {"mccs-fig10", "[mccs] figure 10",
          "tenants that come, and policies that change, on the running testbed",
          mccs_figure9::RunFigure10};
}

}  // namespace tutti

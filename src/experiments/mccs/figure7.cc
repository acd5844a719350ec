// [mccs] figure 7: others take three quarters of the links that a ring uses; the ring is reversed at run time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mccs/testbed.h"
#include "registry.h"

namespace tutti {
namespace mccs_figure7 {
namespace {

using namespace mccs;

// Routes of the testbed's circle of leaves: 0 clockwise, 1 the other way.
constexpr const char* kClockwise =
    R"({"install": {"tenant": "A", "rings": [[0,1,2,3]], "route": 0}})";
constexpr const char* kReversed =
    R"({"install": {"tenant": "A", "rings": [[3,2,1,0]], "route": 1}})";
constexpr const char* kBackground =
    R"({"background": {"from": "H0", "to": "H1", "flows": 3, "port": 50010}})";

// The paper's, not named, over 500: of 128 and of 32 MB.
constexpr std::array<int64_t, 2> kBytes = {256'000, 64'000};

TestbedTenant TenantOf(int64_t bytes) {
  return {.name = "A", .ranks = {{0, 0}, {1, 0}, {2, 0}, {3, 0}}, .bytes = bytes};
}

struct Measured {
  double before = 0, taken = 0, back = 0;  // Mbit/s of bus bandwidth
  // From the command to the end of what ran then, on the old ring, and of the first collective at 95 %.
  double old_ended_s = 0, first_fast_s = 0;
  double change_s = 0;
  Chart over_time;
};

// One run: each collective by when it began.
Chart OverTime(const TestbedOutcome& outcome, const TestbedTenant& tenant) {
  const double from_s = outcome.steps[0].second;
  Chart chart{.title = "One run: a ring of four hosts, others on a link of it, the ring reversed",
              .x_label = "seconds",
              .y_label = "bus bandwidth, Mbit/s",
              .y_min = 0,
              .series = {{.name = "bus bandwidth"}}};
  for (const Iteration& iteration : outcome.tenants.at(tenant.name))
    if (iteration.begin_s >= from_s)
      chart.series[0].points.emplace_back(iteration.begin_s - from_s,
                                          BusMbit(tenant, iteration.end_s - iteration.begin_s));
  chart.series.push_back(
      CommandLineAt(outcome.steps[1].second - from_s, kNicMbit, "others send, then reversed"));
  chart.series.push_back(CommandLineAt(outcome.steps[2].first - from_s, kNicMbit, ""));
  return chart;
}

TestbedRun RunOf(int32_t seed, const TestbedTenant& tenant) {
  constexpr double kPhase_s = 2.5;
  return {.switches = "ring",
          // Four racks with two ways from each to each, as the circle has.
          .network = "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(4,2))",
          .seed = seed,
          .tenants = {tenant},
          .steps = {{0, kClockwise}, {kPhase_s, kBackground}, {kPhase_s, kReversed}},
          .last_s = kPhase_s};
}

Measured MeasuredOf(const TestbedOutcome& outcome, const TestbedTenant& tenant) {
  Measured measured;
  const auto rate = [&](size_t phase) {
    return BusMbit(tenant, MedianOf(outcome.CollectiveTimes(tenant.name, phase)));
  };
  measured.before = rate(0);
  measured.taken = rate(1);
  measured.back = rate(2);
  const auto [told_s, done_s] = outcome.steps[2];
  measured.change_s = done_s - told_s;
  measured.over_time = OverTime(outcome, tenant);
  constexpr double kBack = 0.95;
  for (const Iteration& iteration : outcome.tenants.at(tenant.name)) {
    if (iteration.begin_s < told_s) measured.old_ended_s = std::max(0.0, iteration.end_s - told_s);
    if (iteration.begin_s >= told_s && measured.first_fast_s == 0 &&
        BusMbit(tenant, iteration.end_s - iteration.begin_s) >= kBack * measured.before)
      measured.first_fast_s = iteration.end_s - told_s;
  }
  return measured;
}

// Values by run.
struct Values {
  std::vector<double> before, taken, back, kept, returned, old_ended, first, change;
};

Result<ExperimentResult> RunFigure7(const ExperimentOptions& options) {
  constexpr double kPaperBefore = 5.9, kPaperTaken = 1.7;
  ResultTable table{
      .title = "A ring of four hosts over a circle of switches, and others on its links",
      .label_name = "what",
      .columns = {}};
  for (const int64_t bytes : kBytes) {
    table.columns.push_back({.name = fmt::format("{} B", bytes), .digits = 1, .timed = true});
    table.columns.push_back({.name = fmt::format("95 %, {} B", bytes)});
  }
  table.columns.push_back({.name = "wanted"});
  std::vector<TestbedRun> runs;
  for (const int64_t bytes : kBytes)
    for (int32_t seed = 1; seed <= kSeeds; ++seed) runs.push_back(RunOf(seed, TenantOf(bytes)));
  const Result<std::vector<TestbedOutcome>> outcomes = RunTestbeds(runs, options, 2);
  if (!outcomes) return tl::unexpected(outcomes.error());
  std::array<Values, kBytes.size()> by_size;
  Chart over_time;
  for (size_t i = 0; i < runs.size(); ++i) {
    Measured measured = MeasuredOf((*outcomes)[i], runs[i].tenants.front());
    Values& values = by_size[i / kSeeds];
    values.before.push_back(measured.before);
    values.taken.push_back(measured.taken);
    values.back.push_back(measured.back);
    values.kept.push_back(100 * measured.taken / measured.before);
    values.returned.push_back(100 * measured.back / measured.before);
    values.old_ended.push_back(1e3 * measured.old_ended_s);
    values.first.push_back(1e3 * measured.first_fast_s);
    values.change.push_back(1e3 * measured.change_s);
    if (over_time.series.empty()) over_time = std::move(measured.over_time);
  }
  const auto row = [&](const std::string& label, std::vector<double> Values::*values,
                       const std::string& paper, const std::string& wanted) {
    ResultRow made{label, {}};
    for (const Values& of_size : by_size) {
      const Estimate estimate = EstimateOf(of_size.*values);
      made.cells.push_back(Number(estimate.mean, paper));
      made.cells.push_back(Half(estimate));
    }
    made.cells.push_back(Word(wanted));
    table.rows.push_back(std::move(made));
  };
  row("bus bandwidth, Mbit/s", &Values::before, "", "100");
  row("three connections of others on a link of the ring", &Values::taken, "", "25");
  row("ring reversed", &Values::back, "", "95 % of before");
  row("kept while others send, % of before", &Values::kept,
      fmt::format("{:.1f}", 100 * kPaperTaken / kPaperBefore), "");
  row("back after the reversal, % of before", &Values::returned, "100.0", ">= 95");
  row("command to the end of what ran, on the old ring, ms", &Values::old_ended, "", "");
  row("command to the end of the first fast collective, ms", &Values::first, "", "< 100");
  row("command to its answer, ms", &Values::change, "", "");
  ExperimentResult result;
  result.tables = {std::move(table)};
  result.charts = {std::move(over_time)};
  result.notes = {
      fmt::format("{} runs of each size. All-reduces by four ranks, one ring; others: three TCP "
                  "connections from H0 to H1, which with the ring's own share the link by four: "
                  "three quarters are taken, as in the paper.",
                  kSeeds),
      "A collective that runs at the command ends on the old ring, at a quarter of the speed; what "
      "the change itself takes is held for a millisecond."};
  for (std::string& note : NotesOf(*outcomes)) result.notes.push_back(std::move(note));
  return result;
}

}  // namespace
}  // namespace mccs_figure7

Experiment MccsFigure7() {
  return {"mccs-fig7", "[mccs] figure 7",
          "a ring slowed by others' traffic and reversed at run time, on the testbed",
          mccs_figure7::RunFigure7};
}

}  // namespace tutti
